// Swap memory on a driver that is made of host memory and fails where it is told to: whatever fails, no byte
// is wrong, and nothing is counted twice.
#include "interposer/swap/mover.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

namespace gpurota::interposer {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

struct Memory {
  std::vector<char> bytes;
  bool mapped = false;
};

struct Mapped {
  std::uint64_t size = 0;
  std::uint64_t handle = 0;
  bool access = false;
};

struct PendingCopy {
  std::uint64_t fence = 0;  // 0: not fenced yet
  char* host = nullptr;
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  bool out = false;
};

// Sizes are scaled down: a unit of 2 MiB has 8 KiB of contents. Copies happen only when they are waited for.
constexpr std::uint64_t kScale = 256;

class FakeDriver {
 public:
  explicit FakeDriver(unsigned seed) : random_(seed) {
    calls = {this,     reserve, unreserve, create, release,  map,        unmap, set_access,
             copy_out, copy_in, fence,     wait,   map_host, unmap_host, pin,   unpin};
  }

  ~FakeDriver() {
    for (void* memory : host_) std::free(memory);
  }
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;

  SwapCalls calls;
  double failing = 0;  // probability that a call fails
  bool pins = true;

  std::uint64_t physical() const {
    std::uint64_t sum = 0;
    for (const auto& [handle, memory] : memory_) sum += memory->bytes.size() * kScale;
    return sum;
  }
  std::size_t ranges() const { return ranges_.size(); }
  std::size_t pinned() const { return pinned_.size(); }
  bool host_is_pinned(const char* p) const {
    const auto it = pinned_.upper_bound(p);
    return it != pinned_.begin() && p < std::prev(it)->first + std::prev(it)->second;
  }

  // What a kernel of the program would do: it faults where nothing is mapped.
  char* at(std::uint64_t address) {
    auto it = mapped_.upper_bound(address);
    if (it == mapped_.begin()) return nullptr;
    --it;
    if (address >= it->first + it->second.size || !it->second.access) return nullptr;
    return memory_.at(it->second.handle)->bytes.data() + (address - it->first) / kScale;
  }

 private:
  static FakeDriver& of(void* self) { return *static_cast<FakeDriver*>(self); }
  bool fails() { return failing > 0 && std::uniform_real_distribution<>(0, 1)(random_) < failing; }

  static CUresult reserve(void* self, std::uint64_t size, std::uint64_t* address) {
    if (of(self).fails()) return CUDA_ERROR_OUT_OF_MEMORY;
    *address = of(self).next_;
    of(self).next_ += size + 64 * kMiB;
    of(self).ranges_[*address] = size;
    return CUDA_SUCCESS;
  }
  static CUresult unreserve(void* self, std::uint64_t address, std::uint64_t size) {
    FakeDriver& d = of(self);
    EXPECT_EQ(d.ranges_.at(address), size);
    const auto inside = d.mapped_.lower_bound(address);
    EXPECT_TRUE(inside == d.mapped_.end() || inside->first >= address + size)
        << "addresses are given back while something is mapped there";
    d.ranges_.erase(address);
    return CUDA_SUCCESS;
  }
  static CUresult create(void* self, std::uint64_t size, std::uint64_t* handle) {
    if (of(self).fails()) return CUDA_ERROR_OUT_OF_MEMORY;
    *handle = ++of(self).last_handle_;
    auto memory = std::make_unique<Memory>();
    memory->bytes.assign(size / kScale, static_cast<char>(0xee));  // somebody else's
    of(self).memory_[*handle] = std::move(memory);
    return CUDA_SUCCESS;
  }
  static CUresult release(void* self, std::uint64_t handle) {
    if (of(self).fails()) return CUDA_ERROR_UNKNOWN;
    EXPECT_FALSE(of(self).memory_.at(handle)->mapped);
    of(self).memory_.erase(handle);
    return CUDA_SUCCESS;
  }
  static CUresult map(void* self, std::uint64_t address, std::uint64_t size, std::uint64_t handle) {
    FakeDriver& d = of(self);
    if (d.fails()) return CUDA_ERROR_OUT_OF_MEMORY;
    EXPECT_EQ(d.memory_.at(handle)->bytes.size() * kScale, size);
    EXPECT_FALSE(d.memory_.at(handle)->mapped);
    EXPECT_FALSE(d.mapped_.contains(address));
    d.mapped_[address] = {size, handle, false};
    d.memory_.at(handle)->mapped = true;
    return CUDA_SUCCESS;
  }
  static CUresult unmap(void* self, std::uint64_t address, std::uint64_t size) {
    FakeDriver& d = of(self);
    if (d.fails()) return CUDA_ERROR_UNKNOWN;
    const Mapped gone = d.mapped_.at(address);
    EXPECT_EQ(gone.size, size);
    for (const PendingCopy& c : d.copies_) {
      EXPECT_FALSE(c.address >= address && c.address < address + size)
          << "unmapped while a copy is under way";
    }
    d.memory_.at(gone.handle)->mapped = false;
    d.mapped_.erase(address);
    return CUDA_SUCCESS;
  }
  static CUresult set_access(void* self, std::uint64_t address, std::uint64_t size) {
    FakeDriver& d = of(self);
    if (d.fails()) return CUDA_ERROR_UNKNOWN;
    for (auto it = d.mapped_.lower_bound(address);
         it != d.mapped_.end() && it->first < address + size; ++it) {
      it->second.access = true;
    }
    return CUDA_SUCCESS;
  }
  static CUresult begin(void* self, const PendingCopy& copy) {
    if (of(self).fails()) return CUDA_ERROR_UNKNOWN;
    EXPECT_TRUE(of(self).host_is_pinned(copy.host));
    of(self).copies_.push_back(copy);
    return CUDA_SUCCESS;
  }
  static CUresult copy_out(void* self, void* host, std::uint64_t address, std::uint64_t size) {
    return begin(self, {0, static_cast<char*>(host), address, size, true});
  }
  static CUresult copy_in(void* self, std::uint64_t address, const void* host, std::uint64_t size) {
    return begin(self, {0, static_cast<char*>(const_cast<void*>(host)), address, size, false});
  }
  static CUresult fence(void* self, std::uint64_t* token) {
    FakeDriver& d = of(self);
    if (d.fails()) return CUDA_ERROR_UNKNOWN;
    *token = ++d.last_fence_;
    for (PendingCopy& c : d.copies_) {
      if (c.fence == 0) c.fence = *token;
    }
    return CUDA_SUCCESS;
  }
  static CUresult wait(void* self, std::uint64_t token) {
    FakeDriver& d = of(self);
    if (d.fails()) return CUDA_ERROR_UNKNOWN;
    std::erase_if(d.copies_, [&](const PendingCopy& c) {
      if (c.fence == 0 || c.fence > token) return false;
      char* gpu = d.at(c.address);
      EXPECT_NE(gpu, nullptr) << "a copy from or to what is not mapped";
      if (gpu == nullptr) return true;
      std::memcpy(c.out ? c.host : gpu, c.out ? gpu : c.host, c.size / kScale);
      return true;
    });
    return CUDA_SUCCESS;
  }
  static void* map_host(void* self, std::uint64_t size) {
    if (of(self).fails()) return nullptr;
    return *of(self).host_.insert(std::calloc(1, size)).first;
  }
  static void unmap_host(void* self, void* memory, std::uint64_t) {
    of(self).host_.erase(memory);
    std::free(memory);
  }
  static bool pin(void* self, void* memory, std::uint64_t size) {
    if (!of(self).pins || of(self).fails()) return false;
    EXPECT_LE(size, 32 * kMiB) << "a larger piece stalls the program's launches";
    of(self).pinned_[static_cast<char*>(memory)] = size;
    return true;
  }
  static void unpin(void* self, void* memory) {
    of(self).pinned_.erase(static_cast<char*>(memory));
  }

  std::mt19937_64 random_;
  std::uint64_t next_ = std::uint64_t{1} << 40;
  std::uint64_t last_handle_ = 0;
  std::uint64_t last_fence_ = 0;
  std::map<std::uint64_t, std::uint64_t> ranges_;
  std::map<std::uint64_t, std::unique_ptr<Memory>> memory_;
  std::map<std::uint64_t, Mapped> mapped_;
  std::vector<PendingCopy> copies_;
  std::set<void*> host_;
  std::map<const char*, std::uint64_t, std::less<>> pinned_;
};

void no_progress(void*, std::uint64_t) {}

// A program with a checksum for each of its allocations.
class Swap : public testing::Test {
 protected:
  explicit Swap(unsigned seed = 1) : driver(seed), random(seed), space(new SwapSpace()) {
    space->set_calls(&driver.calls);
    host().set_limits(&driver.calls, std::uint64_t{4} << 30, std::uint64_t{4} << 30);
  }

  HostMemory& host() { return space->host(); }
  Mover mover() { return Mover(*space, no_progress, nullptr); }

  std::uint64_t add(std::uint64_t size) {
    std::uint64_t address = 0;
    if (space->allocate(size, &address) != CUDA_SUCCESS) return 0;
    live[address] = size;
    write(address);
    return address;
  }
  // Its first and last bytes and some between; small ones have a byte of their own at this scale or none.
  void write(std::uint64_t address) {
    const std::uint64_t size = live[address];
    if (size < kSmall) return;
    for (std::uint64_t at : probes(address, size)) {
      char* p = driver.at(at);
      ASSERT_NE(p, nullptr);
      *p = value[at] = static_cast<char>(random());
    }
  }
  void check(std::uint64_t address) {
    const std::uint64_t size = live[address];
    if (size < kSmall) return;
    for (std::uint64_t at : probes(address, size)) {
      const char* p = driver.at(at);
      ASSERT_NE(p, nullptr) << "not resident";
      ASSERT_EQ(*p, value[at]) << "a wrong byte";
    }
  }
  static std::vector<std::uint64_t> probes(std::uint64_t address, std::uint64_t size) {
    std::vector<std::uint64_t> all;
    for (std::uint64_t o = 0; o < size / kScale * kScale; o += kMiB / 2) all.push_back(address + o);
    return all;
  }

  FakeDriver driver;
  std::mt19937_64 random;
  std::unique_ptr<SwapSpace> space;
  std::map<std::uint64_t, std::uint64_t> live;
  std::map<std::uint64_t, char> value;
};

TEST_F(Swap, ComesBackAtTheSameAddressesWithTheSameBytes) {
  const std::uint64_t a = add(200 * kMiB);
  const std::uint64_t b = add(3 * kMiB);
  EXPECT_EQ(space->resident_bytes(), 204 * kMiB);
  const Moved out = mover().evict(UINT64_MAX);
  EXPECT_EQ(out.bytes, 204 * kMiB);
  EXPECT_EQ(driver.physical(), 0u);
  EXPECT_EQ(driver.at(a), nullptr);
  EXPECT_EQ(mover().restore(UINT64_MAX).bytes, 204 * kMiB);
  check(a);
  check(b);
}

TEST_F(Swap, BlocksAreOfAtMost64MiBAndOnlyAsManyMoveAsAreNeeded) {
  add(640 * kMiB);
  EXPECT_EQ(mover().evict(100 * kMiB).bytes, 128 * kMiB);
  EXPECT_EQ(space->out_bytes(), 128 * kMiB);
  EXPECT_EQ(mover().restore(127 * kMiB).bytes, 64 * kMiB) << "never beyond the room there is";
}

TEST_F(Swap, SmallOnesShareAPageAndAreFoundByAnyAddressInThem) {
  const std::uint64_t a = add(1000);
  const std::uint64_t b = add(100);
  EXPECT_EQ(space->resident_bytes(), 2 * kMiB);
  FoundRange found{};
  ASSERT_TRUE(space->find(a + 999, &found));
  EXPECT_EQ(found.address, a);
  ASSERT_TRUE(space->find(b, &found));
  EXPECT_EQ(found.address, b);
  EXPECT_FALSE(space->find(b + 512, &found));
  std::uint64_t released = 0, dropped = 0;
  EXPECT_EQ(space->free(a + 1, &released, &dropped), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(space->free(a, &released, &dropped), CUDA_SUCCESS);
  EXPECT_EQ(released, 0u);
  EXPECT_EQ(space->free(a, &released, &dropped), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(space->free(b, &released, &dropped), CUDA_SUCCESS);
  EXPECT_EQ(released, 2 * kMiB);
  EXPECT_EQ(driver.ranges(), 0u);
}

TEST_F(Swap, ASmallOneTellsWhetherItTookAPageOfItsOwn) {
  std::uint64_t address = 0;
  std::uint64_t took = 1;
  EXPECT_FALSE(space->allocate_shared(1000, &address)) << "there is no page yet";
  ASSERT_EQ(space->allocate(1000, &address, &took), CUDA_SUCCESS);
  EXPECT_EQ(took, kPageBytes);
  ASSERT_EQ(space->allocate(1000, &address, &took), CUDA_SUCCESS);
  EXPECT_EQ(took, 0u);
  EXPECT_TRUE(space->allocate_shared(1000, &address));
  EXPECT_FALSE(space->allocate_shared(kSmall, &address)) << "that is no small one";
  EXPECT_EQ(space->resident_bytes(), kPageBytes);
}

TEST_F(Swap, AFreeWorksWhileEvicted) {
  const std::uint64_t a = add(100 * kMiB);
  mover().evict(UINT64_MAX);
  const std::uint64_t kept = host().free_bytes();
  std::uint64_t released = 0, dropped = 0;
  EXPECT_EQ(space->free(a, &released, &dropped), CUDA_SUCCESS);
  EXPECT_EQ(dropped, 100 * kMiB);
  EXPECT_EQ(released, 0u);
  EXPECT_EQ(host().free_bytes(), kept + 100 * kMiB);
  EXPECT_EQ(driver.ranges(), 0u);
  EXPECT_EQ(mover().restore(UINT64_MAX).bytes, 0u);
}

TEST_F(Swap, WhatDidNotRunSinceIsNotCopiedAgain) {
  const std::uint64_t a = add(64 * kMiB);
  mover().evict(UINT64_MAX);
  mover().restore(UINT64_MAX);
  *driver.at(a) ^= 1;  // nobody may write while the gate is shut: seen here as not copied
  mover().evict(UINT64_MAX);
  mover().restore(UINT64_MAX);
  check(a);
  mover().forget_copies();
  write(a);
  mover().evict(UINT64_MAX);
  mover().restore(UINT64_MAX);
  check(a);
}

TEST_F(Swap, HostMemoryIsPinnedInSmallPiecesAndPageableMemoryIsReachedThroughARing) {
  const std::uint64_t a = add(160 * kMiB);
  host().set_limits(&driver.calls, std::uint64_t{1} << 30, 64 * kMiB);
  EXPECT_EQ(mover().evict(UINT64_MAX).bytes, 160 * kMiB);
  EXPECT_EQ(host().pinned_bytes(), 64 * kMiB);
  EXPECT_EQ(driver.pinned(), 3u) << "two regions and the ring";
  EXPECT_EQ(mover().restore(UINT64_MAX).bytes, 160 * kMiB);
  check(a);
}

TEST_F(Swap, HostMemoryThatRunsOutLeavesTheRestResident) {
  const std::uint64_t a = add(256 * kMiB);
  host().set_limits(&driver.calls, 128 * kMiB, 128 * kMiB);
  const Moved moved = mover().evict(UINT64_MAX);
  EXPECT_EQ(moved.bytes, 128 * kMiB);
  EXPECT_TRUE(moved.out_of_host);
  EXPECT_EQ(space->resident_bytes(), 128 * kMiB);
  mover().restore(UINT64_MAX);
  check(a);
}

TEST_F(Swap, BuffersOfWhatRunsAreUsedForWhatIsOut) {
  const std::uint64_t a = add(64 * kMiB);
  const std::uint64_t b = add(64 * kMiB);
  host().set_limits(&driver.calls, 64 * kMiB, 64 * kMiB);
  ASSERT_EQ(mover().evict(64 * kMiB).bytes, 64 * kMiB);
  mover().restore(UINT64_MAX);
  mover().forget_copies();
  std::uint64_t released = 0, dropped = 0;
  ASSERT_EQ(space->free(a, &released, &dropped), CUDA_SUCCESS);
  EXPECT_EQ(mover().evict(UINT64_MAX).bytes, 64 * kMiB);
  mover().restore(UINT64_MAX);
  check(b);
}

TEST_F(Swap, AnAllocationThatFailsHalfWayLeavesNothing) {
  for (int i = 0; i < 300; ++i) {
    driver.failing = 0.1;
    const std::uint64_t lost = space->lost_bytes();
    const std::uint64_t a = add(300 * kMiB);
    driver.failing = 0;
    if (a == 0) {
      EXPECT_EQ(driver.physical(), space->resident_bytes());
      EXPECT_EQ(space->resident_bytes(), space->lost_bytes());
    } else {
      std::uint64_t released = 0, dropped = 0;
      ASSERT_EQ(space->free(a, &released, &dropped), CUDA_SUCCESS);
      EXPECT_EQ(space->lost_bytes(), lost);
    }
  }
}

TEST_F(Swap, SizesThatCannotBeAreRefused) {
  std::uint64_t address = 0;
  EXPECT_EQ(space->allocate(0, &address), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(space->allocate(UINT64_MAX, &address), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(space->allocate(UINT64_MAX - kMiB, &address), CUDA_ERROR_OUT_OF_MEMORY);
}

class SwapUnderFailures : public Swap, public testing::WithParamInterface<unsigned> {
 protected:
  SwapUnderFailures() : Swap(GetParam()) {}

  void step() {
    switch (random() % 8) {
      case 0:
      case 1:
        add(random() % 3 == 0 ? random() % 5000 + 1 : (random() % 150 + 1) * kMiB);
        break;
      case 2:
        free_one();
        break;
      case 3:
        mover().evict(random() % 300 * kMiB);
        break;
      case 4:
        mover().restore(random() % 300 * kMiB);
        break;
      case 5:
        host().trim(random() % 200 * kMiB);
        break;
      case 6:
        host().prepare(64 * kMiB);
        break;
      default:
        run();
        break;
    }
  }

  void free_one() {
    if (live.empty()) return;
    auto it = live.begin();
    std::advance(it, static_cast<long>(random() % live.size()));
    std::uint64_t released = 0, dropped = 0;
    space->free(it->first, &released, &dropped);
    live.erase(it);
  }

  // A turn: all is brought back, however often that fails; then everything is read, and written anew.
  void run() {
    const double failing = driver.failing;
    for (int tries = 0; space->out_bytes() != 0; ++tries) {
      if (tries > 20) driver.failing = 0;
      mover().restore(UINT64_MAX);
    }
    for (const auto& [address, size] : live) check(address);
    mover().forget_copies();
    for (const auto& [address, size] : live) {
      if (random() % 2 == 0) write(address);
    }
    driver.failing = failing;
  }
};

TEST_P(SwapUnderFailures, NoByteIsWrongAndNothingIsCountedTwice) {
  host().set_limits(&driver.calls, std::uint64_t{1} << 30, std::uint64_t{512} << 20);
  driver.failing = 0.03;
  for (int i = 0; i < 400 && !HasFatalFailure(); ++i) {
    step();
    ASSERT_EQ(driver.physical(), space->resident_bytes());
  }
  run();
  driver.failing = 0;
  const std::uint64_t lost = space->lost_bytes();
  while (!live.empty()) free_one();
  EXPECT_EQ(space->lost_bytes(), lost);
  EXPECT_EQ(driver.physical(), lost);
  EXPECT_EQ(space->out_bytes(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, SwapUnderFailures, testing::Range(1u, 41u));

}  // namespace
}  // namespace gpurota::interposer
