// A fake driver in host memory that fails on request, for the tests of the mover. Not thread-safe.
#pragma once

#include "interposer/swap/driver_calls.h"
#include "interposer/swap/host_memory.h"
#include "interposer/swap/scaled_memory_test.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

namespace gpurota::interposer::swap_test {

inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

class FakeDriver {
 public:
  explicit FakeDriver(unsigned seed) : random_(seed) {
    calls = {this,       reserve,  unreserve, create,    release, map,          unmap,
             set_access, copy_out, copy_in,   fence,     wait,    map_host,     unmap_host,
             pin,        unpin,    allow,     hash_sums, hash,    distrust_hash};
  }

  ~FakeDriver() {
    for (void* memory : host_) std::free(memory);
  }
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;

  SwapCalls calls;
  double failing = 0;  // probability that a call fails
  bool pins = true;
  std::uint32_t last_traits = 0;
  bool hashes = true, distrusted = false;
  bool hash_fails = false, copies_fail = false;              // of whole units only
  int hashed = 0;                                            // how many times
  std::uint64_t copied_out = 0;                              // bytes, of whole units
  std::function<void(std::string*, std::uint64_t)> misread;  // changes what the kernel reads

  std::uint64_t physical(bool hosted_only = false) const {
    std::uint64_t sum = 0;
    for (const auto& [handle, memory] : memory_)
      sum += memory->hosted || !hosted_only ? memory->bytes.size() * kScale : 0;
    return sum;
  }
  std::size_t ranges() const { return ranges_.size(); }
  std::size_t mappings() const { return mapped_.size(); }
  std::size_t pinned() const { return pinned_.size(); }
  bool host_is_pinned(const char* p) const {
    const auto it = pinned_.upper_bound(p);
    return it != pinned_.begin() && p < std::prev(it)->first + std::prev(it)->second;
  }

  // Like the program's cuMemSetAccess.
  void allow_range(std::uint64_t address, std::uint64_t size) {
    for (auto it = mapped_.lower_bound(address); it != mapped_.end() && it->first < address + size;
         ++it) {
      it->second.access = true;
    }
  }

  // An access like one by a kernel of the program. nullptr: nothing is mapped there, so the kernel
  // would fault.
  char* at(std::uint64_t address) {
    auto it = mapped_.upper_bound(address);
    if (it == mapped_.begin()) return nullptr;
    --it;
    if (address >= it->first + it->second.size || !it->second.access) return nullptr;
    return memory_.at(it->second.handle)->bytes.data() +
           (it->second.offset + address - it->first) / kScale;
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
  static CUresult create(void* self, std::uint64_t size, std::uint32_t traits,
                         std::uint64_t* handle) {
    of(self).last_traits = traits;
    if (of(self).fails()) return CUDA_ERROR_OUT_OF_MEMORY;
    *handle = ++of(self).last_handle_;
    std::vector<char> bytes(size / kScale, static_cast<char>(0xee));  // another program's
    of(self).memory_[*handle] =
        std::make_unique<Memory>(Memory{std::move(bytes), 0, (traits & kHosted) != 0});
    return CUDA_SUCCESS;
  }
  static CUresult release(void* self, std::uint64_t handle) {
    if (of(self).fails()) return CUDA_ERROR_UNKNOWN;
    EXPECT_EQ(of(self).memory_.at(handle)->mappings, 0);
    of(self).memory_.erase(handle);
    return CUDA_SUCCESS;
  }
  static CUresult map(void* self, std::uint64_t address, std::uint64_t size, std::uint64_t offset,
                      std::uint64_t handle) {
    FakeDriver& d = of(self);
    if (d.fails()) return CUDA_ERROR_OUT_OF_MEMORY;
    EXPECT_LE(offset + size, d.memory_.at(handle)->bytes.size() * kScale);
    const auto next = d.mapped_.lower_bound(address);
    EXPECT_TRUE(next == d.mapped_.end() || next->first >= address + size);
    d.mapped_[address] = {size, handle, offset, false};
    ++d.memory_.at(handle)->mappings;
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
    --d.memory_.at(gone.handle)->mappings;
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
  static CUresult allow(void* self, std::uint64_t address, std::uint64_t size,
                        std::uint64_t access) {
    FakeDriver& d = of(self);
    if (d.fails()) return CUDA_ERROR_UNKNOWN;
    EXPECT_EQ(d.mapped_.at(address).size, size);
    d.mapped_.at(address).access = access != 0;
    return CUDA_SUCCESS;
  }
  static CUresult begin(void* self, const PendingCopy& copy) {
    const bool refuses = of(self).copies_fail && copy.size >= kUnitBytes;
    if (refuses || of(self).fails()) return CUDA_ERROR_UNKNOWN;
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
      d.carry_out(c);
      return true;
    });
    return CUDA_SUCCESS;
  }
  void carry_out(const PendingCopy& c) {
    EXPECT_EQ(c.address % kPieceBytes, 0u);
    EXPECT_EQ(c.size % kPieceBytes, 0u);
    for (std::uint64_t piece = 0; piece < c.size / kPieceBytes; ++piece) {
      char* gpu = at(c.address + piece * kPieceBytes);
      ASSERT_NE(gpu, nullptr) << "a copy from or to what is not mapped";
      if (c.sums != nullptr) {
        std::string contents(gpu, kContents);
        if (misread) misread(&contents, piece);
        c.sums[piece] = sum_of_piece(contents, piece, c.seed);
        continue;
      }
      char* host = c.host + piece * kPieceBytes;
      std::memcpy(c.out ? host : gpu, c.out ? gpu : host, kContents);
      if (c.out && c.size >= kUnitBytes) copied_out += kPieceBytes;
    }
  }
  static HashSum* hash_sums(void* self) {
    return of(self).hashes && !of(self).distrusted ? of(self).sums_.data() : nullptr;
  }
  static CUresult hash(void* self, std::uint64_t address, std::uint64_t size, std::uint64_t seed,
                       HashSum* sums) {
    FakeDriver& d = of(self);
    if (d.hash_fails || d.fails()) return CUDA_ERROR_UNKNOWN;
    ++d.hashed;
    EXPECT_GE(sums, d.sums_.data());
    EXPECT_LE(sums + size / kPieceBytes, d.sums_.data() + kHashSums);
    d.copies_.push_back({0, nullptr, address, size, false, sums, seed});
    return CUDA_SUCCESS;
  }
  static void distrust_hash(void* self) { of(self).distrusted = true; }
  static void* map_host(void* self, std::uint64_t size, bool /*hurry*/) {
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
  std::vector<HashSum> sums_ = std::vector<HashSum>(kHashSums);
  std::set<void*> host_;
  std::map<const char*, std::uint64_t, std::less<>> pinned_;
};

}  // namespace gpurota::interposer::swap_test
