// Questions to the daemon near the limit, and when its refusal is believed. The daemon here is in
// this process and under the test's control, as no real one can be made to answer in the middle of
// another thread's call.
#include "interposer/memory/reserve.h"

#include "abi/page.h"
#include "abi/wire.h"
#include "interposer/account/device.h"
#include "interposer/account/headroom.h"
#include "interposer/account/state.h"
#include "interposer/driver/driver.h"
#include "interposer/memory/fake_driver_test.h"
#include "interposer/memory/linear.h"
#include "interposer/memory/pool_charge.h"
#include "interposer/memory/pool_settlement.h"
#include "interposer/os/socket.h"

#include <gtest/gtest.h>

#include <functional>
#include <mutex>
#include <thread>

#include <sys/socket.h>
#include <unistd.h>

namespace gpurota::interposer_test {
namespace {

using namespace gpurota::interposer;

// Answers GROW, as long as it has `available` bytes, and CONTEXTS. `before_no` and `after_no` are
// called around a refusal, in the thread of the Grantor.
class Grantor {
 public:
  explicit Grantor(std::uint64_t available) : available_(available) {
    int ends[2] = {-1, -1};
    ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends);
    mine_ = ends[0];
    EXPECT_TRUE(adopt_socket(ends[1], &state().link.call));
    thread_ = std::thread([this] { serve(); });
  }
  ~Grantor() {
    ::shutdown(mine_, SHUT_RDWR);
    thread_.join();
    ::close(mine_);
    ::close(state().link.call.fd);
    state().link.call.open = false;
  }
  void give(std::int64_t bytes) { available_ += static_cast<std::uint64_t>(bytes); }

  // Set by the test's thread while the Grantor's thread runs.
  class Hook {
   public:
    void operator=(std::function<void()> what) {
      const std::lock_guard lock(mutex_);
      what_ = std::move(what);
    }
    void operator()() {
      std::unique_lock lock(mutex_);
      const std::function<void()> what = what_;
      lock.unlock();
      if (what) what();
    }

   private:
    std::mutex mutex_;
    std::function<void()> what_;
  };
  Hook before_no, after_no;
  std::atomic<int> questions{0};

 private:
  void serve() {
    gpurota_msg_grow question{};
    while (::recv(mine_, &question, sizeof question, 0) > 0) {
      if (question.header.type == GPUROTA_MSG_CONTEXTS) {
        gpurota_msg_info info{};
        info.header = {GPUROTA_MSG_INFO, sizeof info, question.header.seq};
        ::send(mine_, &info, sizeof info, MSG_NOSIGNAL);
        continue;
      }
      if (question.header.type == GPUROTA_MSG_RETURN) continue;
      ++questions;
      available_ += question.returned_bytes;
      gpurota_msg_grown answer{};
      answer.header = {GPUROTA_MSG_GROWN, sizeof answer, question.header.seq};
      const bool yes = question.need_bytes <= available_;
      answer.status = yes ? GPUROTA_OK : GPUROTA_REFUSED_LIMIT;
      answer.granted_bytes = yes ? question.need_bytes : 0;
      available_ -= answer.granted_bytes;
      answer.available_bytes = available_;
      if (!yes) before_no();
      ::send(mine_, &answer, sizeof answer, MSG_NOSIGNAL);
      if (!yes) after_no();
    }
  }

  int mine_ = -1;
  std::atomic<std::uint64_t> available_;
  std::thread thread_;
};

// A fragmented pool: each request makes it grow by 32 MiB.
std::uint64_t in_pieces = 0;
std::function<void()> meanwhile = [] {};

CUresult pieces_attribute(CUmemoryPool, CUmemPool_attribute attribute, void* value) {
  *static_cast<std::uint64_t*>(value) =
      attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT ? 0 : in_pieces;
  return CUDA_SUCCESS;
}
CUresult pieces_alloc(CUdeviceptr* out, size_t, CUstream) {
  in_pieces += 32u << 20;
  meanwhile();
  return *out = 0x10000, CUDA_SUCCESS;
}
int pieces_trims = 0;
CUresult pieces_trim(CUmemoryPool, size_t) { return ++pieces_trims, CUDA_SUCCESS; }

// `meanwhile` is what another thread does while this one reads the second of two pools.
CUresult (*first_attribute)(CUmemoryPool, CUmemPool_attribute, void*) = nullptr;
CUmemoryPool second_pool() { return reinterpret_cast<CUmemoryPool>(std::uintptr_t{0x6000}); }
CUresult attribute_of_two(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  if (pool != second_pool()) return first_attribute(pool, attribute, value);
  *static_cast<std::uint64_t*>(value) = 0;
  meanwhile();
  return CUDA_SUCCESS;
}

// 1 KiB across the border of two blocks.
constexpr std::uint64_t kAcross = 1001 * kBlockBytes - 512;
CUresult alloc_across(CUdeviceptr* out, size_t) { return *out = kAcross, CUDA_SUCCESS; }
CUresult free_across(CUdeviceptr) { return CUDA_SUCCESS; }

// A primary context that one thread makes while another wants it.
std::atomic<int> primary_active{0};
std::atomic<bool> other_is_back{false};
std::thread second;
bool noted_for_other = false;
CUcontext the_primary() { return reinterpret_cast<CUcontext>(std::uintptr_t{0x7000}); }
CUresult primary_state(CUdevice, unsigned* flags, int* active) {
  *flags = 0;
  *active = primary_active.load();
  return CUDA_SUCCESS;
}
CUresult retain_primary(CUcontext* out, CUdevice) {
  *out = the_primary();
  if (primary_active.exchange(1) != 0) return CUDA_SUCCESS;
  second = std::thread([] {
    CUcontext mine = nullptr;
    EXPECT_EQ(cuDevicePrimaryCtxRetain(&mine, 0), CUDA_SUCCESS);
    ContextInfo info;
    noted_for_other = find_primary(0, &info);
    other_is_back = true;
  });
  for (int i = 0; i < 200 && !other_is_back; ++i) ::usleep(1000);
  return CUDA_SUCCESS;
}
CUresult retain_plainly(CUcontext* out, CUdevice) {
  primary_active = 1;
  return *out = the_primary(), CUDA_SUCCESS;
}
CUresult release_primary(CUdevice) { return primary_active = 0, CUDA_SUCCESS; }
// Another thread wants the primary context before the releasing call returns.
CUresult release_with_another_behind(CUdevice) {
  primary_active = 0;
  second = std::thread([] {
    CUcontext mine = nullptr;
    EXPECT_EQ(cuDevicePrimaryCtxRetain(&mine, 0), CUDA_SUCCESS);
    other_is_back = true;
  });
  for (int i = 0; i < 200 && !other_is_back; ++i) ::usleep(1000);
  return CUDA_SUCCESS;
}
CUresult no_primary(CUcontext*, CUdevice) { return CUDA_ERROR_OUT_OF_MEMORY; }
CUresult retain_from_callback(CUcontext* out, CUdevice device) {
  install(kFn_cuDevicePrimaryCtxRetain, retain_primary);
  primary_active = 1;
  return cuDevicePrimaryCtxRetain(out, device);
}

std::int64_t headroom() { return state().slots[0].headroom.load(); }

// The page that is shared with the daemon.
class Page {
 public:
  explicit Page(std::uint64_t limit) {
    page_ = {};
    set_limit(limit);
    state().page.store(&page_);
  }
  ~Page() { state().page.store(nullptr); }
  void set_limit(std::uint64_t bytes) {
    page_.grant[0].limit_bytes = page_.grant[0].available_bytes = bytes;
  }
  std::uint64_t used() const { return page_.use[0].used_bytes; }

 private:
  inline static gpurota_page page_;
};

class Reserve : public ::testing::Test {
 protected:
  void SetUp() override {
    in_pieces = 0;
    pieces_trims = 0;
    meanwhile = [] {};
  }
  static void use_pool_in_pieces() {
    install(kFn_cuMemPoolGetAttribute, pieces_attribute);
    install(kFn_cuMemAllocAsync, pieces_alloc);
    install(kFn_cuMemPoolTrimTo, pieces_trim);
  }
};

TEST_F(Reserve, RequestBeyondTheLimitIsAskedOnce) {
  reset_fake_driver(64 * kMiB);
  ASSERT_TRUE(take(state(), 0, 64 * kMiB));
  const Page page(32 * kMiB);
  use_pool_in_pieces();
  ASSERT_NE(add_pool(state(), second_pool(), 0, false), nullptr);
  Flight other(state().slots[0]);
  Grantor grantor(0);
  grantor.before_no = [] { put(0, kMiB / 4); };
  EXPECT_NE(reserve(0, 33 * kMiB), Answer::kYes);
  EXPECT_EQ(grantor.questions, 1);
  EXPECT_EQ(pieces_trims, 0);
}

TEST_F(Reserve, PoolsAreTrimmedOnceForAllQuestionsInARow) {
  reset_fake_driver(64 * kMiB);
  ASSERT_TRUE(take(state(), 0, 64 * kMiB));
  use_pool_in_pieces();
  ASSERT_NE(add_pool(state(), second_pool(), 0, false), nullptr);
  Grantor grantor(0);
  grantor.before_no = [&] {
    if (grantor.questions < 8) put(0, kMiB);
  };
  EXPECT_NE(reserve(0, 32 * kMiB), Answer::kYes);
  EXPECT_EQ(grantor.questions, 8);
  EXPECT_EQ(pieces_trims, 1);
}

TEST_F(Reserve, MemoryFreedDuringARefusalIsUsed) {
  reset_fake_driver(64 * kMiB);
  ASSERT_TRUE(take(state(), 0, 64 * kMiB));
  Grantor grantor(0);
  grantor.before_no = [] { put(0, 32 * kMiB); };
  EXPECT_EQ(reserve(0, 32 * kMiB), Answer::kYes);
  EXPECT_EQ(grantor.questions, 1);
}

TEST_F(Reserve, RefusalIsFinalIfNothingWasFreed) {
  reset_fake_driver(0);
  Grantor grantor(16 * kMiB);
  EXPECT_NE(reserve(0, 32 * kMiB), Answer::kYes);
  EXPECT_EQ(grantor.questions, 1);
}

// The pool releases 64 MiB, and before this thread can take any of it another thread asks the
// daemon and gives back all headroom with its question.
TEST_F(Reserve, MemoryOfPoolsIsRequestedAgainAfterAConcurrentReturn) {
  reset_fake_driver(64 * kMiB);
  CUdeviceptr p = 0;
  ASSERT_EQ(cuMemAllocAsync(&p, 40 << 20, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFreeAsync(p, nullptr), CUDA_SUCCESS);
  first_attribute =
      reinterpret_cast<decltype(first_attribute)>(g_real_functions[kFn_cuMemPoolGetAttribute]);
  install(kFn_cuMemPoolGetAttribute, attribute_of_two);
  ASSERT_NE(add_pool(state(), second_pool(), 0, false), nullptr);
  Grantor grantor(0);
  meanwhile = [&] { grantor.give(surrender(state(), 0)); };
  EXPECT_EQ(cuMemAlloc_v2(&p, 48 << 20), CUDA_SUCCESS);
  EXPECT_EQ(grantor.questions, 2);
}

// Both pools are beyond their reserve at the same time; the daemon has enough for both.
TEST_F(Reserve, EachPoolObtainsItsOwnExcess) {
  reset_fake_driver(32 * kMiB);
  use_pool_in_pieces();
  CUdeviceptr p = 0;
  ASSERT_EQ(cuMemAllocAsync(&p, 1 << 20, nullptr), CUDA_SUCCESS);
  Grantor grantor(48 * kMiB);
  meanwhile = [] { state().slots[0].headroom.fetch_sub(32 * kMiB); };
  EXPECT_EQ(cuMemAllocAsync(&p, 1 << 20, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(headroom(), -32 * kMiB) << "what the other pool owes is its to bring";
}

TEST_F(Reserve, GrowthCoveredByFreedMemoryIsNotRefused) {
  reset_fake_driver(32 * kMiB);
  use_pool_in_pieces();
  CUdeviceptr p = 0;
  ASSERT_EQ(cuMemAllocAsync(&p, 1 << 20, nullptr), CUDA_SUCCESS);
  Grantor grantor(0);
  grantor.before_no = [&] {
    if (grantor.questions == 1) put(0, 40 * kMiB);
  };
  EXPECT_EQ(cuMemAllocAsync(&p, 1 << 20, nullptr), CUDA_SUCCESS);
  EXPECT_GE(headroom(), 0);
}

TEST_F(Reserve, GrowthPartlyCoveredByFreedMemoryRequestsTheRest) {
  reset_fake_driver(32 * kMiB);
  use_pool_in_pieces();
  CUdeviceptr p = 0;
  ASSERT_EQ(cuMemAllocAsync(&p, 1 << 20, nullptr), CUDA_SUCCESS);
  Grantor grantor(16 * kMiB);
  grantor.before_no = [&] {
    if (grantor.questions == 1) put(0, 16 * kMiB);
  };
  EXPECT_EQ(cuMemAllocAsync(&p, 1 << 20, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(headroom(), 0);
}

TEST_F(Reserve, RefusalWaitsForTransientMemoryOfOtherThreads) {
  reset_fake_driver(64 * kMiB);
  ASSERT_TRUE(take(state(), 0, 64 * kMiB));
  Flight other(state().slots[0]);
  Grantor grantor(0);
  grantor.after_no = [&] {
    put(0, 32 * kMiB);
    other.end();
  };
  EXPECT_EQ(reserve(0, 32 * kMiB), Answer::kYes);
}

// The flight ends before any thread could check whether it is under way.
TEST_F(Reserve, RefusalIsNotFinalIfAFlightEndedMeanwhile) {
  reset_fake_driver(64 * kMiB);
  ASSERT_TRUE(take(state(), 0, 64 * kMiB));
  Flight other(state().slots[0]);
  Grantor grantor(0);
  grantor.before_no = [&] {
    if (grantor.questions > 1) return;
    grantor.give(32 * kMiB);  // as if another thread's GROW had returned these bytes
    state().slots[0].freed.fetch_add(1);
    other.end();
  };
  EXPECT_EQ(reserve(0, 32 * kMiB), Answer::kYes);
  EXPECT_EQ(grantor.questions, 2);
}

TEST_F(Reserve, LaterAndWaitingFlightsAreNotWaitedFor) {
  reset_fake_driver(0);
  Slot& slot = state().slots[0];
  Flight first(slot);
  const std::uint64_t last = last_ticket(slot);
  Flight later(slot);
  EXPECT_TRUE(under_way(slot, last));
  first.wait_begins();
  EXPECT_FALSE(under_way(slot, last));
  first.wait_ends();
  EXPECT_TRUE(under_way(slot, last));
  first.end();
  EXPECT_FALSE(under_way(slot, last));
  EXPECT_TRUE(under_way(slot, last_ticket(slot)));
}

TEST_F(Reserve, BlockSharedWithAnUndoneAllocationStaysCharged) {
  reset_fake_driver(2 * kMiB);
  install(kFn_cuMemAlloc_v2, alloc_across);
  install(kFn_cuMemFree_v2, free_across);
  Grantor grantor(0);
  std::atomic<std::int64_t> new_to_other{-1};
  grantor.before_no = [&] { new_to_other = enter_blocks(state(), kAcross + 512, 512); };
  CUdeviceptr p = 0;
  EXPECT_EQ(cuMemAlloc_v2(&p, 1024), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(new_to_other, 0);
  EXPECT_EQ(charged_bytes(), 2 * kMiB);
  leave_blocks(state(), 0, kAcross + 512, 512);
  EXPECT_EQ(charged_bytes(), 0);
}

// If the page kept showing an unused reserve, the daemon would underestimate what the driver
// holds by itself, and would grant too much by the same amount.
TEST_F(Reserve, PageStopsShowingAnUnusedReserve) {
  reset_fake_driver(32 * kMiB);
  const Page page(1 << 30);
  CUdeviceptr p = 0;
  ASSERT_EQ(cuMemAllocAsync(&p, 1 << 20, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(page.used(), 32u << 20);
  {
    Grantor grantor(32 * kMiB);
    EXPECT_EQ(cuMemAllocAsync(&p, 1 << 20, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(grantor.questions, 1);
  }
  EXPECT_EQ(page.used(), 32u << 20);
}

// The daemon lowers the measured overhead of a process only if the use that the page shows is the
// same in several samples. So the page must not change while pools serve several threads from
// memory that the pools have already.
TEST_F(Reserve, PageIsUnchangedIfAPoolServesAnAllocation) {
  reset_fake_driver(128 * kMiB);
  const Page page(1 << 30);
  CUdeviceptr p = 0;
  ASSERT_EQ(cuMemAllocAsync(&p, 1 << 20, nullptr), CUDA_SUCCESS);
  ASSERT_TRUE(take(state(), 0, 32 * kMiB));  // another's, under way
  ASSERT_EQ(cuMemAllocAsync(&p, 1 << 20, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(page.used(), 32u << 20);
}

TEST_F(Reserve, UnusedReserveIsReturnedAtOnceAboveTheLimit) {
  reset_fake_driver(96 * kMiB);
  Page page(1 << 30);
  CUdeviceptr p = 0;
  Grantor grantor(0);
  ASSERT_EQ(cuMemAllocAsync(&p, 1 << 20, nullptr), CUDA_SUCCESS);
  page.set_limit(64 * kMiB);
  ASSERT_EQ(cuMemAllocAsync(&p, 1 << 20, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(state().slots[0].granted.load(), 32 * kMiB);
  EXPECT_EQ(charged_bytes(), 32 * kMiB);
}

// A thread that did not wait would use memory that is evicted, or have a context whose cost nobody
// has reserved.
TEST_F(Reserve, ThreadWaitsForThePrimaryContextThatAnotherMakes) {
  reset_fake_driver(0);
  primary_active = 0;
  other_is_back = noted_for_other = false;
  install(kFn_cuDevicePrimaryCtxGetState, primary_state);
  install(kFn_cuDevicePrimaryCtxRetain, retain_primary);
  Grantor grantor(0);
  CUcontext context = nullptr;
  EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  second.join();
  EXPECT_TRUE(noted_for_other);
  EXPECT_EQ(state().slots[0].contexts.load(), 1u);
  EXPECT_EQ(grantor.questions, 1);
}

TEST_F(Reserve, PrimaryContextMadeRightAfterAReleaseIsCountedOnce) {
  reset_fake_driver(0);
  primary_active = 0;
  other_is_back = false;
  install(kFn_cuDevicePrimaryCtxGetState, primary_state);
  install(kFn_cuDevicePrimaryCtxRetain, retain_plainly);
  install(kFn_cuDevicePrimaryCtxRelease_v2, release_with_another_behind);
  Grantor grantor(0);
  CUcontext context = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
  second.join();
  EXPECT_EQ(state().slots[0].contexts.load(), 1u);
  EXPECT_EQ(grantor.questions, 2);
  install(kFn_cuDevicePrimaryCtxRelease_v2, release_primary);
  EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
  EXPECT_EQ(state().slots[0].contexts.load(), 0u);
}

TEST_F(Reserve, FailedPrimaryContextIsReservedForAgain) {
  reset_fake_driver(0);
  primary_active = 0;
  install(kFn_cuDevicePrimaryCtxGetState, primary_state);
  install(kFn_cuDevicePrimaryCtxRetain, no_primary);
  Grantor grantor(0);
  CUcontext context = nullptr;
  EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(grantor.questions, 2);
  EXPECT_EQ(state().slots[0].contexts.load(), 0u);
}

TEST_F(Reserve, CallbackMayRetainThePrimaryContextBeingMade) {
  reset_fake_driver(0);
  primary_active = 0;
  install(kFn_cuDevicePrimaryCtxGetState, primary_state);
  install(kFn_cuDevicePrimaryCtxRetain, retain_from_callback);
  Grantor grantor(0);
  CUcontext context = nullptr;
  EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  EXPECT_EQ(state().slots[0].contexts.load(), 1u);
}

}  // namespace
}  // namespace gpurota::interposer_test
