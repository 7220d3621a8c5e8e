// Swap leases through the sockets: leases, hand-written tenants, and turns between them.
#include "abi/wire_latency.h"
#include "swap_fixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <deque>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

namespace gpurota::testing {
namespace {

TEST_F(SwapTest, ALeaseHasNearlyTheWholeGpuAndSaysThatItTakesTurns) {
  const auto reply = acquire(swap_request());
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->lease.share, proto::Share::kSwap);
  EXPECT_GT(*reply->lease.gpus[0].limit_bytes, gib(22));
  EXPECT_LT(*reply->lease.gpus[0].limit_bytes, gib(24));
  EXPECT_TRUE(reply->preload);
  EXPECT_TRUE(acquire(swap_request())) << "as many as like";
}

TEST_F(SwapTest, SlicesAndTurnsAgreeOnTheRemainder) {
  ASSERT_TRUE(acquire(swap_request(gib(16))));
  proto::Acquire slice;
  slice.request.memory = SizeSpec{gib(10), 0};
  EXPECT_EQ(acquire(slice).error().code, Code::kNoGpu) << "the largest turn needs 16 GiB";
  slice.request.memory = SizeSpec{gib(6), 0};
  EXPECT_TRUE(acquire(slice));
  EXPECT_LE(turns().capacity_bytes, gib(18));
  EXPECT_EQ(acquire(swap_request(gib(20))).error().code, Code::kNoGpu);
  EXPECT_EQ(acquire(swap_request(gib(30))).error().code, Code::kLimit) << "no waiting helps";
  proto::Acquire whole;
  EXPECT_EQ(acquire(whole).error().code, Code::kNoGpu);
}

TEST_F(SwapTest, ALibraryThatCannotMoveItsMemoryIsRefused) {
  const std::uint64_t lease = make_lease();
  SwapClient old(daemon.tenant_socket()), tenant(daemon.tenant_socket());
  EXPECT_EQ(old.hello(lease, 0), GPUROTA_REFUSED_VERSION);
  ASSERT_EQ(tenant.hello(lease), GPUROTA_OK);
  EXPECT_NE(tenant.features() & GPUROTA_FEATURE_SWAP, 0u);
  tenant.here();
  EXPECT_TRUE(eventually([&] { return tenant.terms().has_value(); }));
  EXPECT_GT(tenant.terms()->host_bytes, gib(20).count());
  EXPECT_GT(tenant.terms()->pinned_bytes, 0u);
  EXPECT_EQ(tenant.terms()->copy_all, 0u);
}

TEST_F(SwapTest, HostMemoryKeptByTenantsFitsTheBudget) {
  SwapClient first(daemon.tenant_socket()), second(daemon.tenant_socket());
  ASSERT_EQ(first.hello(make_lease()), GPUROTA_OK);
  first.here();
  EXPECT_TRUE(eventually([&] {
    return first.terms() && first.terms()->kept_bytes == gib(256).count();
  })) << "it is alone";
  ASSERT_EQ(second.hello(make_lease()), GPUROTA_OK);
  second.here();
  EXPECT_TRUE(
      eventually([&] { return second.terms() && first.terms()->kept_bytes == gib(128).count(); }));
  EXPECT_EQ(second.terms()->kept_bytes, gib(128).count());
}

TEST_F(SwapTest, FillerPinsHostMemoryBeforeAnyRequestComes) {
  proto::Acquire call = swap_request();
  call.request.kind = "filler";
  const auto lease = acquire(call);
  ASSERT_TRUE(lease) << lease.error().message;
  SwapClient tenant(daemon.tenant_socket());
  ASSERT_TRUE(tenant.join(lease->lease.lease_id.value));
  EXPECT_TRUE(eventually([&] { return tenant.terms() && tenant.terms()->takes_turns == 1; }));
  EXPECT_FALSE(turns().takes_turns) << "it is alone";
}

TEST_F(SwapTest, HostMemoryIsPinnedAheadWhereAGpuIsNearlyFull) {
  SwapClient first(daemon.tenant_socket()), second(daemon.tenant_socket());
  const auto tenths = [tenth = turns().capacity_bytes.count() / 10](std::uint64_t count) {
    return Bytes(tenth * count);
  };
  ASSERT_TRUE(first.join(make_lease(tenths(5))));
  ASSERT_TRUE(second.join(make_lease(tenths(5))));
  ASSERT_EQ(first.grow(tenths(4)), GPUROTA_OK);
  ASSERT_EQ(second.grow(tenths(2)), GPUROTA_OK);
  EXPECT_EQ(first.terms()->takes_turns, GPUROTA_TURNS_NONE);
  ASSERT_EQ(second.grow(tenths(3) - mib(64)), GPUROTA_OK);
  EXPECT_TRUE(eventually([&] {
    return first.terms()->takes_turns == GPUROTA_TURNS_LIKELY &&
           second.terms()->takes_turns == GPUROTA_TURNS_LIKELY;
  }));
  EXPECT_FALSE(turns().takes_turns);
}

class AllIsCopied : public SwapTest {
 protected:
  AllIsCopied() : SwapTest(copying()) {}
  static config::Config copying() {
    config::Config config = with_turns();
    config.turns.clean_blocks = false;
    return config;
  }
};

TEST_F(AllIsCopied, WhereTheSiteSaysSo) {
  SwapClient tenant(daemon.tenant_socket());
  ASSERT_EQ(tenant.hello(make_lease()), GPUROTA_OK);
  tenant.here();
  EXPECT_TRUE(eventually([&] { return tenant.terms() && tenant.terms()->copy_all == 1; }));
}

class LittlePinned : public SwapTest {
 protected:
  LittlePinned() : SwapTest(little()) {}
  static config::Config little() {
    config::Config config = with_turns();
    config.turns.pinned = SizeSpec{gib(38), 0};
    return config;
  }
};

TEST_F(LittlePinned, PinnedMemoryIsDividedByMemoryLikelyToMove) {
  std::deque<SwapClient> tenants;
  for (const Bytes has : {gib(16), gib(16), gib(1), gib(1), gib(1), gib(1)}) {
    SwapClient& tenant = tenants.emplace_back(daemon.tenant_socket());
    ASSERT_TRUE(tenant.join(make_lease(gib(18))));
    ASSERT_EQ(tenant.grow(has), GPUROTA_OK);
  }
  EXPECT_TRUE(eventually([&] {
    return std::all_of(tenants.begin(), tenants.end(), [](SwapClient& tenant) {
      return tenant.terms()->pinned_bytes >= tenant.has().movable.count();
    });
  }));
  Bytes sum;
  for (SwapClient& tenant : tenants) sum += Bytes(tenant.terms()->pinned_bytes);
  EXPECT_LE(sum, gib(38));
}

TEST_F(SwapTest, SliceGetsNoTurnMessages) {
  proto::Acquire slice;
  slice.request.memory = SizeSpec{gib(6), 0};
  const auto reply = acquire(slice);
  SwapClient tenant(daemon.tenant_socket());
  ASSERT_EQ(tenant.hello(reply->lease.lease_id.value), GPUROTA_OK);
  EXPECT_EQ(tenant.features() & GPUROTA_FEATURE_SWAP, 0u);
}

// An older library ignores the messages of latency classes in a swap lease.
TEST_F(SwapTest, OnlyALibraryThatKnowsLatencyClassesInSwapLeasesTakesPart) {
  proto::Acquire interactive = swap_request(gib(4));
  interactive.request.latency = "interactive";
  const auto lease = acquire(interactive);
  ASSERT_TRUE(lease) << lease.error().message;
  constexpr std::uint64_t kOld = GPUROTA_FEATURE_SWAP | GPUROTA_FEATURE_LATENCY;
  SwapClient old(daemon.tenant_socket()), server(daemon.tenant_socket());
  SwapClient training(daemon.tenant_socket());
  ASSERT_EQ(training.hello(make_lease(gib(4)), kOld | GPUROTA_FEATURE_SWAP_LATENCY), GPUROTA_OK);
  ASSERT_EQ(old.hello(lease->lease.lease_id.value, kOld), GPUROTA_OK);
  ASSERT_EQ(server.hello(lease->lease.lease_id.value, kOld | GPUROTA_FEATURE_SWAP_LATENCY),
            GPUROTA_OK);
  EXPECT_TRUE(eventually([&] { return server.pages() == 1; }));
  EXPECT_EQ(old.pages(), 0);
  EXPECT_EQ(training.pages(), 0);
}

TEST_F(SwapTest, ATenantGrowsToItsLeasesLimitAndNotBeyond) {
  SwapClient tenant(daemon.tenant_socket());
  ASSERT_TRUE(tenant.join(make_lease(gib(8))));
  EXPECT_EQ(tenant.grow(gib(6)), GPUROTA_OK);
  EXPECT_EQ(tenant.grow(gib(3)), GPUROTA_REFUSED_LIMIT);
  EXPECT_EQ(tenant.query()->limit_bytes, gib(8).count());
  EXPECT_EQ(tenant.query()->available_bytes, gib(2).count());
  tenant.send_shrink(gib(1), {}, {});
  EXPECT_TRUE(eventually([&] { return tenant.query()->available_bytes == gib(3).count(); }));
  EXPECT_TRUE(happened(proto::EventType::kGrantDenied));
}

TEST_F(SwapTest, AFreeIsSeenByAnImmediateRequestOnAnotherSocket) {
  SwapClient tenant(daemon.tenant_socket());
  ASSERT_TRUE(tenant.join(make_lease(gib(8))));
  for (int round = 0; round < 5; ++round) {
    ASSERT_EQ(tenant.grow(gib(8)), GPUROTA_OK);
    for (int i = 0; i < 128; ++i) tenant.send_shrink(mib(64), {}, {});
    ASSERT_EQ(tenant.query()->available_bytes, gib(8).count());
  }
}

TEST_F(SwapTest, TenantThatNeverStopsSendingIsStillAnswered) {
  SwapClient tenant(daemon.tenant_socket());
  ASSERT_TRUE(tenant.join(make_lease(gib(8))));
  std::atomic<bool> done = false;
  std::thread talker([&] {
    while (!done) tenant.send_shrink({}, {}, Bytes(1));
  });
  const auto answer = tenant.query();
  done = true;
  talker.join();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->limit_bytes, gib(8).count());
}

TEST_F(SwapTest, MemoryForAContextIsReservedAndThenMeasured) {
  SwapClient tenant(daemon.tenant_socket());
  ASSERT_TRUE(tenant.join(make_lease(gib(8))));
  ASSERT_EQ(tenant.grow({}, GPUROTA_SWAP_CONTEXT), GPUROTA_OK);
  EXPECT_EQ(tenant.has().wired, mib(600)) << "none was seen on this GPU yet";
  daemon.probe.set_process(gpu(), ::getpid(), mib(518));
  ASSERT_TRUE(tenant.contexts(1));
  EXPECT_TRUE(
      eventually([&] { return tenant.query()->available_bytes == (gib(8) - mib(518)).count(); }));
  SwapClient other(daemon.tenant_socket());
  ASSERT_TRUE(other.join(make_lease(gib(8))));
  ASSERT_EQ(other.grow({}, GPUROTA_SWAP_CONTEXT), GPUROTA_OK);
  EXPECT_EQ(other.has().wired, mib(518)) << "it is known now";
}

TEST_F(SwapTest, UnreportedMemoryCountsAsWired) {
  SwapClient tenant(daemon.tenant_socket());
  ASSERT_TRUE(tenant.join(make_lease(gib(8))));
  ASSERT_EQ(tenant.grow(gib(2)), GPUROTA_OK);
  daemon.probe.set_process(gpu(), ::getpid(), gib(2) + mib(300));
  EXPECT_TRUE(eventually([&] { return turns().leases.at(0).wired_bytes == mib(300); }));
  daemon.probe.set_process(gpu(), ::getpid(), gib(2) + mib(100));
  EXPECT_TRUE(eventually([&] { return turns().leases.at(0).wired_bytes == mib(100); }));
}

TEST_F(SwapTest, TenantsThatDoNotFitTakeTurns) {
  SwapClient a(daemon.tenant_socket()), b(daemon.tenant_socket());
  ASSERT_TRUE(a.join(make_lease()) && b.join(make_lease()));
  a.set_busy(true);
  b.set_busy(true);
  ASSERT_EQ(a.grow(gib(16)), GPUROTA_OK);
  EXPECT_TRUE(eventually([&] { return a.gate_open() && b.gate_open(); })) << "all fits";
  EXPECT_TRUE(eventually([&] { return a.terms() && a.terms()->takes_turns == 0; }));
  ASSERT_EQ(b.grow(gib(16)), GPUROTA_OK) << "in its turn";
  EXPECT_TRUE(eventually([&] { return a.terms()->takes_turns == 1; }))
      << "so that it has host memory ready";
  EXPECT_TRUE(eventually([&] { return a.turns() > 3 && b.turns() > 3; }));
  EXPECT_TRUE(eventually([&] { return !a.out().is_zero(); }));
  EXPECT_TRUE(eventually([&] { return !b.out().is_zero(); }));
  const proto::TurnGpu seen = turns();
  EXPECT_TRUE(seen.takes_turns);
  EXPECT_LE(seen.used_bytes, seen.capacity_bytes);
  ASSERT_FALSE(seen.switches.empty());
  EXPECT_FALSE(seen.switches.back().in_bytes.is_zero());
  EXPECT_LT(seen.switches.back().in_bytes, gib(10)) << "only the deficit moves";
  const std::vector<proto::TurnSwitch> again = turns().switches;
  EXPECT_NE(std::find(again.begin(), again.end(), seen.switches.back()), again.end())
      << "it is known again by its time";
}

TEST_F(SwapTest, EvictionMayExceedTheOrderByABlockButNotByMuchMore) {
  SwapClient a(daemon.tenant_socket()), b(daemon.tenant_socket());
  ASSERT_TRUE(a.join(make_lease()) && b.join(make_lease()));
  a.set_block(mib(48));  // orders are multiples of 64 MiB
  b.set_block(mib(48));
  ASSERT_EQ(a.grow(gib(16)), GPUROTA_OK);
  a.set_busy(true);
  b.set_busy(true);
  ASSERT_EQ(b.grow(gib(16)), GPUROTA_OK);
  EXPECT_TRUE(eventually([&] { return a.turns() > 3 && b.turns() > 3; }));
  for (int i = 0; i < 1000; ++i) a.send_moved(GPUROTA_SWAP_EVICT, mib(64), {});
  EXPECT_TRUE(a.hung_up());
}

TEST_F(SwapTest, AnIdleLeaseGivesItsTurnAway) {
  SwapClient a(daemon.tenant_socket()), b(daemon.tenant_socket());
  ASSERT_TRUE(a.join(make_lease()) && b.join(make_lease()));
  ASSERT_EQ(a.grow(gib(16)), GPUROTA_OK);
  b.set_busy(true);
  ASSERT_EQ(b.grow(gib(16)), GPUROTA_OK);
  EXPECT_TRUE(eventually([&] { return b.gate_open(); }));
  const int before = b.turns();
  EXPECT_TRUE(eventually([&] { return turns().holder.has_value(); }));
  EXPECT_EQ(b.turns(), before) << "nobody interrupts it";
}

TEST_F(SwapTest, EndedTenantIsCountedUntilTheDriverHasFreedItsMemory) {
  const std::uint64_t lease = make_lease(), other = make_lease();
  Child child({SWAP_PROGRAM, daemon.tenant_socket(), std::to_string(lease),
               std::to_string(gib(16).count())});
  ASSERT_EQ(child.read_line(), "granted");
  const pid_t pid = child.pid();
  daemon.probe.set_process(gpu(), pid, gib(16));
  child.kill();
  SwapClient tenant(daemon.tenant_socket());
  ASSERT_TRUE(tenant.join(other));
  const std::uint32_t seq = tenant.ask(gib(16));
  const int seen = daemon.probe.samples_read();
  EXPECT_TRUE(eventually([&] { return daemon.probe.samples_read() > seen + 3; }));
  EXPECT_FALSE(tenant.answered(seq)) << "neither granted nor refused";
  daemon.probe.remove_process(pid);
  EXPECT_TRUE(eventually([&] { return tenant.answered(seq).has_value(); }));
  EXPECT_EQ(tenant.answered(seq)->status, GPUROTA_OK);
}

TEST_F(SwapTest, AStoppedTenantIsSkippedAndReported) {
  const std::uint64_t lease = make_lease(), other = make_lease();
  Child child({SWAP_PROGRAM, daemon.tenant_socket(), std::to_string(lease),
               std::to_string(gib(16).count())});
  ASSERT_EQ(child.read_line(), "granted");
  ASSERT_EQ(::kill(child.pid(), SIGSTOP), 0);
  siginfo_t stopped{};  // other threads of the child run until one has taken the signal
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child.pid()), &stopped, WSTOPPED), 0);
  SwapClient tenant(daemon.tenant_socket());
  ASSERT_TRUE(tenant.join(other));
  tenant.set_busy(true);
  // 4 GiB fit beside the other lease, so the tenant does not wait for the stopped one.
  EXPECT_EQ(tenant.grow(gib(4)), GPUROTA_OK);
  EXPECT_TRUE(eventually([&] { return tenant.gate_open(); }));
  const std::uint32_t more = tenant.ask(gib(12));  // does not fit beside the other lease
  EXPECT_TRUE(eventually([&] { return happened(proto::EventType::kTurnTrouble); }));
  EXPECT_FALSE(tenant.answered(more));
  ASSERT_EQ(::kill(child.pid(), SIGCONT), 0);
  EXPECT_TRUE(eventually([&] { return tenant.answered(more).has_value(); }));
  EXPECT_EQ(tenant.answered(more)->status, GPUROTA_OK);
}

TEST_F(SwapTest, ProgramWithAnRdmaDeviceShowsWhyItsMemoryStays) {
  SwapClient a(daemon.tenant_socket()), b(daemon.tenant_socket());
  ASSERT_TRUE(a.join(make_lease()) && b.join(make_lease()));
  ASSERT_EQ(a.grow(gib(16)), GPUROTA_OK);
  a.set_rdma(true);
  b.set_busy(true);
  const std::uint32_t more = b.ask(gib(16));
  EXPECT_TRUE(eventually([&] {
    const auto events = daemon.call(proto::Events{});
    return events &&
           std::any_of(events->events.begin(), events->events.end(), [](const proto::Event& e) {
             return e.type == proto::EventType::kTurnTrouble &&
                    e.message.find("RDMA device open") != std::string::npos;
           });
  }));
  EXPECT_FALSE(b.answered(more));
  a.set_rdma(false);  // the tenant has closed the device
  EXPECT_TRUE(eventually([&] { return b.answered(more).has_value(); }));
}

TEST_F(SwapTest, NewDaemonContinuesTheTurns) {
  SwapClient* a = new SwapClient(daemon.tenant_socket());
  SwapClient* b = new SwapClient(daemon.tenant_socket());
  const std::uint64_t lease_a = make_lease(), lease_b = make_lease();
  ASSERT_TRUE(a->join(lease_a) && b->join(lease_b));
  a->set_busy(true);
  b->set_busy(true);
  ASSERT_EQ(a->grow(gib(16)), GPUROTA_OK);
  ASSERT_EQ(b->grow(gib(16)), GPUROTA_OK);
  EXPECT_TRUE(eventually([&] { return a->turns() > 1 && b->turns() > 1; }));
  for (const bool in_mid_move : {false, true}) {
    if (in_mid_move) {
      a->set_lazy(true);
      b->set_lazy(true);
    }
    daemon.stop();
    const SwapClient::Has has_a = a->has(), has_b = b->has();
    delete a;
    delete b;
    daemon.start();
    a = new SwapClient(daemon.tenant_socket());
    b = new SwapClient(daemon.tenant_socket());
    ASSERT_TRUE(a->join(lease_a, has_a) && b->join(lease_b, has_b));
    a->set_busy(true);
    b->set_busy(true);
    EXPECT_TRUE(eventually([&] { return a->turns() > 2 && b->turns() > 2; }));
    const proto::TurnGpu seen = turns();
    EXPECT_LE(seen.used_bytes, seen.capacity_bytes);
  }
  delete a;
  delete b;
}

TEST_F(SwapTest, AdministratorsSettingAppliesAtOnceAndAfterARestart) {
  SwapClient tenant(daemon.tenant_socket());
  ASSERT_TRUE(tenant.join(make_lease(gib(8))));
  ASSERT_EQ(tenant.grow(gib(8)), GPUROTA_OK);
  proto::SetGpus set;
  set.gpu_ids = {"0"};
  set.capacity = SizeSpec{gib(4), 0};
  EXPECT_EQ(daemon.call(set).error().code, Code::kLimit) << "8 GiB have to fit in a turn";
  set.capacity = SizeSpec{gib(12), 0};
  set.quantum = "7s";
  set.turns = "on";
  ASSERT_TRUE(daemon.call(set));
  EXPECT_EQ(turns().capacity_bytes, gib(12));
  EXPECT_EQ(acquire(swap_request(gib(16))).error().code, Code::kLimit);
  set.quantum = "7 bananas";
  EXPECT_EQ(daemon.call(set).error().code, Code::kInvalid);
  tenant.disconnect();
  daemon.stop();
  daemon.start();
  EXPECT_EQ(turns().capacity_bytes, gib(12));
  EXPECT_EQ(turns().quantum_ms, 7000);
  EXPECT_EQ(turns().mode, "on");
  proto::SetGpus reset;
  reset.gpu_ids = {"0"};
  reset.reset = true;
  ASSERT_TRUE(daemon.call(reset));
  EXPECT_GT(turns().capacity_bytes, gib(23));
  EXPECT_EQ(turns().mode, "auto");
}

TEST_F(SwapTest, TurnsAreOffOnlyWhileAllFits) {
  SwapClient a(daemon.tenant_socket()), b(daemon.tenant_socket());
  ASSERT_TRUE(a.join(make_lease()) && b.join(make_lease()));
  proto::SetGpus off;
  off.gpu_ids = {"0"};
  off.turns = "off";
  ASSERT_TRUE(daemon.call(off));
  ASSERT_EQ(a.grow(gib(16)), GPUROTA_OK);
  EXPECT_EQ(b.grow(gib(16)), GPUROTA_REFUSED_TURNS_OFF);
  EXPECT_EQ(b.grow(gib(4)), GPUROTA_OK);
  proto::SetGpus automatic = off;
  automatic.turns = "auto";
  ASSERT_TRUE(daemon.call(automatic));
  a.set_busy(true);
  ASSERT_EQ(b.grow(gib(12)), GPUROTA_OK);
  EXPECT_EQ(daemon.call(off).error().code, Code::kLimit) << "they do not fit together any more";
}

TEST_F(SwapTest, PrioritiesAreThoseThatTheSiteAllows) {
  proto::Acquire call = swap_request();
  call.request.priority = 10;
  const auto refused = acquire(call);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kLimit);
  call.request.priority = -10;
  const auto reply = acquire(call);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->lease.priority, -10);
  EXPECT_EQ(turns().leases.at(0).priority, -10);
}

class DeadlineTest : public SwapTest {
 protected:
  static config::Config impatient() {
    config::Config config = with_turns();
    config.turns.yield_deadline = std::chrono::milliseconds(100);
    return config;
  }
  DeadlineTest() : SwapTest(impatient()) {}
};

TEST_F(DeadlineTest, ATenantThatDoesNotGiveItsTurnBackIsReported) {
  SwapClient a(daemon.tenant_socket()), b(daemon.tenant_socket());
  ASSERT_TRUE(a.join(make_lease()) && b.join(make_lease()));
  a.set_busy(true);
  ASSERT_EQ(a.grow(gib(16)), GPUROTA_OK);
  a.set_lazy(true);
  b.set_busy(true);
  const std::uint32_t seq = b.ask(gib(16));
  EXPECT_TRUE(eventually([&] { return happened(proto::EventType::kTurnTrouble); }));
  EXPECT_FALSE(b.answered(seq));
}

}  // namespace
}  // namespace gpurota::testing
