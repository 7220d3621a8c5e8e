#include "daemon/tenants/compute_shares.h"

#include "daemon/tenants/fake_library_test.h"
#include "daemon/tenants/tenant_messages.h"
#include "ipc/packet.h"
#include "testing/fake_event_loop.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>

#include <sys/socket.h>

namespace gpurota::daemon {
namespace {

constexpr LeaseId kShare{1}, kPlain{2}, kOther{3};
const GpuUuid kFirst{"GPU-1"}, kSecond{"GPU-2"};

class ComputeSharesTest : public ::testing::Test {
 protected:
  using Library = FakeLibrary;

  void lease(LeaseId id, int percent, LatencyClass latency = LatencyClass::kNormal,
             const GpuUuid& gpu = kFirst, ParkState park = ParkState::kNone, int most = 0) {
    LeaseEntry entry(processes);
    entry.lease.id = id;
    entry.lease.latency = latency;
    entry.lease.park = park;
    LeaseGpu& share = entry.lease.gpus.emplace_back();
    share.uuid = gpu;
    share.limit = gib(1);
    share.compute = {percent, most};
    tables.leases.erase(id);
    tables.leases.emplace(id, std::move(entry));
    shares.refresh();
  }

  Library connect(LeaseId lease, std::vector<GpuUuid> gpus = {kFirst}) {
    Library library = connect_library(table, processes, lease, std::move(gpus));
    shares.refresh();
    return library;
  }

  // The next WINDOWS: on or off; nothing: there is no message.
  static std::optional<bool> told(const Library& library) {
    std::array<std::byte, 256> buffer{};
    auto received = ipc::receive_packet(library.event.get(), buffer, 1);
    if (!received || received->state != ipc::IoState::kDone) return std::nullopt;
    gpurota_msg_windows windows;
    std::memcpy(&windows, buffer.data(), sizeof windows);
    EXPECT_EQ(windows.header.type, std::uint16_t{GPUROTA_MSG_WINDOWS});
    return windows.on != 0;
  }
  static void set_busy(const Library& library, bool busy) {
    __atomic_store_n(&library.tenant->shared().work, busy ? 1u : 2u, __ATOMIC_RELEASE);
  }
  static bool is_open(const Library& library) {
    const std::uint32_t word =
        __atomic_load_n(&library.tenant->shared().grant[0].window, __ATOMIC_ACQUIRE);
    return (word & 1) == 0;
  }
  // The program has work while its window is open, and waits for the window otherwise.
  static void run(const Library& library) {
    gpurota_page& page = library.tenant->shared();
    const bool open = is_open(library);
    const std::uint32_t word = __atomic_load_n(&page.work, __ATOMIC_ACQUIRE);
    __atomic_store_n(&page.work, ((word + 2) & ~1u) + (open ? 1u : 0u), __ATOMIC_RELEASE);
    __atomic_store_n(&page.waiting, open ? 0u : 1u, __ATOMIC_RELEASE);
  }
  // The program submits more work.
  static void go_on(const Library& library) {
    __atomic_fetch_add(&library.tenant->shared().work, 2u, __ATOMIC_RELEASE);
  }
  static bool within_10_s(const std::function<bool()>& holds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!holds()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    return true;
  }

  testing::FakeEventLoop loop;
  testing::FakeProcesses processes{loop};
  LeaseTables tables;
  TenantTable table;
  ComputeShares shares{tables, table};
};

TEST_F(ComputeSharesTest, SlicesTakeWindowsWhileALeaseWithAShareIsOnTheirGpu) {
  lease(kShare, 30);
  lease(kPlain, 0);
  const Library share = connect(kShare);
  EXPECT_FALSE(told(share)) << "it is alone";
  const Library plain = connect(kPlain);
  EXPECT_EQ(told(share), true);
  EXPECT_EQ(told(plain), true);
  lease(kShare, 0);
  EXPECT_EQ(told(share), false);
  EXPECT_EQ(told(plain), false);
  lease(kShare, 50);
  EXPECT_EQ(told(share), true);
  EXPECT_EQ(told(plain), true);
}

TEST_F(ComputeSharesTest, InteractiveLeasesOtherGpusAndLeasesOfSeveralGpusTakeNoPart) {
  lease(kShare, 30);
  lease(kPlain, 0, LatencyClass::kInteractive);
  lease(kOther, 0, LatencyClass::kNormal, kSecond);
  const Library share = connect(kShare);
  const Library interactive = connect(kPlain);
  const Library elsewhere = connect(kOther, {kSecond});
  const Library several = connect(kOther, {kFirst, kSecond});
  EXPECT_FALSE(told(share));
  EXPECT_FALSE(told(interactive));
  EXPECT_FALSE(told(elsewhere));
  EXPECT_FALSE(told(several));
}

TEST_F(ComputeSharesTest, OnlyOnePartyHasAWindowWhileTwoHaveWork) {
  lease(kShare, 50);
  lease(kPlain, 0);
  const Library share = connect(kShare);
  const Library plain = connect(kPlain);
  EXPECT_TRUE(is_open(share) && is_open(plain));
  for (const bool first : {true, false, true, false}) {
    EXPECT_TRUE(within_10_s([&] {
      run(share);
      run(plain);
      return is_open(share) == first && is_open(plain) != first;
    }));
  }
  __atomic_store_n(&plain.tenant->shared().waiting, 0u, __ATOMIC_RELEASE);
  set_busy(plain, false);
  EXPECT_TRUE(within_10_s([&] { return is_open(share) && is_open(plain); }));
}

// All processes of slices without a share have their windows together.
TEST_F(ComputeSharesTest, SlicesWithoutAShareAreOneParty) {
  lease(kShare, 50);
  lease(kPlain, 0);
  lease(kOther, 0);
  const Library share = connect(kShare);
  const Library plain = connect(kPlain);
  const Library other = connect(kOther);
  const auto run_all = [&] {
    for (const Library* each : {&share, &plain, &other}) run(*each);
  };
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(within_10_s([&] {
      run_all();
      return !is_open(share) && is_open(plain) && is_open(other);
    }));
    EXPECT_TRUE(within_10_s([&] {
      run_all();
      return is_open(share) && !is_open(plain) && !is_open(other);
    }));
  }
}

// The program was stopped, or does nothing and never asks whether its work has ended.
TEST_F(ComputeSharesTest, WorkOfWhichNothingIsHeardDoesNotCountForLong) {
  lease(kShare, 90);
  lease(kPlain, 0);
  const Library share = connect(kShare);
  const Library plain = connect(kPlain);
  set_busy(share, true);
  set_busy(plain, true);
  EXPECT_TRUE(within_10_s([&] { return !is_open(plain); }));
  EXPECT_TRUE(within_10_s([&] {
    go_on(plain);
    return is_open(share) && is_open(plain);
  }));
  go_on(share);
  EXPECT_TRUE(within_10_s([&] {
    go_on(plain);
    return is_open(share) != is_open(plain);
  }));
}

TEST_F(ComputeSharesTest, AParkedLeaseTakesNoPart) {
  lease(kShare, 50);
  lease(kPlain, 0);
  const Library share = connect(kShare);
  const Library plain = connect(kPlain);
  EXPECT_EQ(told(plain), true);
  set_busy(share, true);
  set_busy(plain, true);
  EXPECT_TRUE(within_10_s([&] { return !is_open(plain); }));
  lease(kShare, 50, LatencyClass::kNormal, kFirst, ParkState::kParking);
  EXPECT_TRUE(is_open(plain));
  EXPECT_EQ(told(plain), false);
}

TEST_F(ComputeSharesTest, ALeaseWithABoundTakesWindowsAlsoAloneAndNobodyElseDoes) {
  lease(kShare, 0, LatencyClass::kNormal, kFirst, ParkState::kNone, 50);
  lease(kPlain, 0);
  const Library bounded = connect(kShare);
  EXPECT_EQ(told(bounded), true);
  const Library plain = connect(kPlain);
  EXPECT_FALSE(told(plain));
  for (int i = 0; i < 3; ++i) {
    for (const bool open : {false, true}) {
      EXPECT_TRUE(within_10_s([&] {
        run(bounded);
        return is_open(bounded) == open;
      }));
    }
  }
  EXPECT_TRUE(is_open(plain));
  const auto minute = shares.last_minute(kShare);
  ASSERT_TRUE(minute);
  EXPECT_GT(minute->bounded.value_or(Duration()), Duration());
  lease(kShare, 0);
  EXPECT_EQ(told(bounded), false);
  EXPECT_TRUE(is_open(bounded));
}

// At a bound of 1 %, 100 ms of work take 10 s to save up.
TEST_F(ComputeSharesTest, ALeaseThatHasUsedItsBoundUpOwesThatAlsoWithANewProcess) {
  lease(kShare, 0, LatencyClass::kNormal, kFirst, ParkState::kNone, 1);
  const Library first = connect(kShare);
  set_busy(first, true);
  EXPECT_TRUE(within_10_s([&] { return !is_open(first); }));
  EXPECT_TRUE(within_10_s([&] {
    const auto minute = shares.last_minute(kShare);
    return minute && minute->got >= std::chrono::milliseconds(150);
  }));
  shares.forget(*first.tenant);
  table.erase(*first.tenant);
  shares.refresh();
  EXPECT_FALSE(shares.last_minute(kShare)) << "the lease is no party";
  const Library second = connect(kShare);
  EXPECT_TRUE(within_10_s([&] { return !is_open(second); })) << "it has had no work yet";
}

TEST_F(ComputeSharesTest, WhatALeaseGotIsCountedAlsoWhileProcessesComeAndGo) {
  lease(kShare, 50);
  lease(kPlain, 0);
  const Library share = connect(kShare);
  const Library plain = connect(kPlain);
  set_busy(share, true);
  set_busy(plain, true);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (std::chrono::steady_clock::now() < end) {
    const Library other = connect(kPlain);
    shares.forget(*other.tenant);
    table.erase(*other.tenant);
    shares.refresh();
    go_on(share);
    go_on(plain);
  }
  const auto first = shares.last_minute(kShare), second = shares.last_minute(kPlain);
  ASSERT_TRUE(first && second);
  ASSERT_TRUE(first->got && second->got);
  EXPECT_GE(*first->got + *second->got, std::chrono::milliseconds(600));
}

// Of the rest that is not promised, the lease with the bound and the plain one have a half each.
TEST_F(ComputeSharesTest, ALeaseWithABoundIsAPartyOfItsOwnBesideAShare) {
  lease(kShare, 50);
  lease(kPlain, 0);
  lease(kOther, 0, LatencyClass::kNormal, kFirst, ParkState::kNone, 90);
  const Library share = connect(kShare);
  const Library plain = connect(kPlain);
  const Library bounded = connect(kOther);
  EXPECT_TRUE(within_10_s([&] {
    for (const Library* each : {&share, &plain, &bounded}) run(*each);
    return !is_open(share) && !is_open(plain) && is_open(bounded);
  }));
  EXPECT_TRUE(within_10_s([&] {
    for (const Library* each : {&share, &plain, &bounded}) run(*each);
    return !is_open(share) && is_open(plain) && !is_open(bounded);
  }));
}

TEST_F(ComputeSharesTest, TheOthersGoOnWhenATenantIsErased) {
  lease(kShare, 50);
  lease(kPlain, 0);
  const Library share = connect(kShare);
  const Library plain = connect(kPlain);
  set_busy(share, true);
  set_busy(plain, true);
  EXPECT_TRUE(within_10_s([&] { return !is_open(plain); }));
  shares.forget(*share.tenant);
  table.erase(*share.tenant);
  shares.refresh();
  EXPECT_TRUE(is_open(plain));
  EXPECT_EQ(told(plain), true);
  EXPECT_EQ(told(plain), false);
}

// Its socket is full, so it is told later.
TEST_F(ComputeSharesTest, ATenantThatDoesNotReadIsToldAgain) {
  lease(kShare, 50);
  lease(kPlain, 0);
  const Library share = connect(kShare);
  while (send_message(share.tenant->event.get(),
                      make_message<gpurota_msg_windows>(GPUROTA_MSG_WINDOWS, 0))) {
  }
  const Library plain = connect(kPlain);
  EXPECT_EQ(told(plain), true);
  while (told(share)) {
  }
  shares.retry();
  EXPECT_EQ(told(share), true);
  EXPECT_FALSE(told(plain));
}

}  // namespace
}  // namespace gpurota::daemon
