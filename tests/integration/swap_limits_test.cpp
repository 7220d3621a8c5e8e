// Priority, quantum, limit and soft limit of swap leases: requested, changed, and their effect on
// turns.
#include "running_daemon.h"
#include "swap_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <string>

#include <unistd.h>

namespace gpurota::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

config::Config with_turns() {
  config::Config config = RunningDaemon::quick();
  config.turns.host_budget = SizeSpec{gib(256), 0};
  // No turn ends by itself during a test.
  config.turns.every.quantum = std::chrono::minutes(10);
  config.limits.everyone.priority = 10;
  return config;
}

class SwapLimitsTest : public ::testing::Test {
 protected:
  explicit SwapLimitsTest(const config::Config& config = with_turns()) : daemon(config) {}

  Result<proto::Acquire::Reply> acquire(const proto::Acquire& request) {
    connections.push_back(daemon.connect());
    return connections.back().call(request);
  }
  LeaseId make_lease(std::optional<Bytes> soft_limit = {},
                     const std::optional<std::string>& quantum = {}) {
    proto::Acquire call;
    call.request.swap = true;
    if (soft_limit) call.request.soft_limit = SizeSpec{*soft_limit, 0};
    call.request.quantum = quantum;
    const auto reply = acquire(call);
    EXPECT_TRUE(reply) << reply.error().message;
    return reply ? reply->lease.lease_id : LeaseId{};
  }
  proto::TurnGpu turns() {
    const auto reply = daemon.call(proto::ListTurns{});
    EXPECT_TRUE(reply);
    return reply ? reply->gpus.at(0) : proto::TurnGpu();
  }
  proto::TurnLease turn_of(LeaseId id) {
    for (const proto::TurnLease& lease : turns().leases) {
      if (lease.lease_id == id) return lease;
    }
    return {};
  }
  proto::Lease lease(LeaseId id) {
    const auto status = daemon.call(proto::Status{});
    for (const proto::Lease& each : status->leases) {
      if (each.lease_id == id) return each;
    }
    return {};
  }
  bool holds(LeaseId id) { return turn_of(id).phase == "holding"; }
  // `first` and `second` use 16 of 24 GiB each, and `second` has the turn.
  void join_both(SwapClient& a, LeaseId first, SwapClient& b, LeaseId second) {
    ASSERT_TRUE(a.join(first.value) && b.join(second.value));
    ASSERT_EQ(a.grow(gib(16)), GPUROTA_OK);
    b.set_busy(true);
    ASSERT_EQ(b.grow(gib(16)), GPUROTA_OK);
    a.set_busy(true);
    ASSERT_TRUE(eventually([&] { return holds(second) && turn_of(first).position == 1; }));
  }

  std::deque<client::Connection> connections;  // outlive the daemon
  RunningDaemon daemon;                        // one GPU of 24 GiB
};

TEST_F(SwapLimitsTest, ANewPriorityCountsAtOnceIsShownAndSurvivesARestart) {
  const LeaseId first = make_lease(), second = make_lease();
  SwapClient a(daemon.tenant_socket()), b(daemon.tenant_socket());
  join_both(a, first, b, second);
  proto::Update update;
  update.lease_id = first;
  update.priority = 10;
  const auto updated = daemon.call(update);
  ASSERT_TRUE(updated) << updated.error().message;
  EXPECT_EQ(updated->lease.priority, 10);
  EXPECT_TRUE(eventually([&] { return holds(first); })) << "without waiting for anything else";
  EXPECT_EQ(turn_of(first).priority, 10);
  update.priority = 101;
  EXPECT_EQ(daemon.call(update).error().code, Code::kInvalid);
  daemon.stop();
  daemon.start();
  EXPECT_EQ(lease(first).priority, 10);
}

TEST_F(SwapLimitsTest, AQuantumOfItsOwnIsShownChangedAndSurvivesARestart) {
  const LeaseId id = make_lease({}, "5s");
  EXPECT_EQ(lease(id).quantum_ms, 5000);
  EXPECT_EQ(turn_of(id).own_quantum_ms, 5000);
  EXPECT_EQ(turn_of(id).quantum_ms, 5000) << "and not the GPU's ten minutes";
  proto::Update update;
  update.lease_id = id;
  update.quantum = "250ms";
  ASSERT_TRUE(daemon.call(update));
  EXPECT_EQ(turn_of(id).quantum_ms, 250);
  daemon.stop();
  daemon.start();
  EXPECT_EQ(turn_of(id).quantum_ms, 250);
  update.quantum = "auto";
  ASSERT_TRUE(daemon.call(update));
  EXPECT_EQ(lease(id).quantum_ms, 0);
  EXPECT_LT(turn_of(id).quantum_ms, 300001) << "by what moving costs";
  update.quantum = "soon";
  EXPECT_THAT(daemon.call(update).error().message, HasSubstr("10ms"));
}

TEST_F(SwapLimitsTest, ALeaseThatTakesNoTurnsHasNoQuantum) {
  proto::Acquire slice;
  slice.request.memory = SizeSpec{gib(6), 0};
  slice.request.quantum = "5s";
  EXPECT_THAT(acquire(slice).error().message, HasSubstr("--swap"));
  slice.request.quantum.reset();
  const auto made = acquire(slice);
  ASSERT_TRUE(made);
  proto::Update update;
  update.lease_id = made->lease.lease_id;
  update.quantum = "5s";
  EXPECT_THAT(daemon.call(update).error().message, HasSubstr("--swap"));
}

TEST_F(SwapLimitsTest, LeaseThatNoLongerFitsBesideForeignUseIsWarnedAndDelaysNobody) {
  const LeaseId large = make_lease(), small = make_lease();
  SwapClient a(daemon.tenant_socket()), b(daemon.tenant_socket());
  ASSERT_TRUE(a.join(large.value) && b.join(small.value));
  ASSERT_EQ(a.grow(turn_of(large).limit_bytes), GPUROTA_OK);
  b.set_busy(true);
  ASSERT_EQ(b.grow(gib(4)), GPUROTA_OK);
  const Child stranger({"/bin/sleep", "100"});
  daemon.probe.set_process(turns().uuid, stranger.pid(), gib(6));
  a.set_busy(true);
  EXPECT_TRUE(eventually([&] {
    return turn_of(large).waits_for == "room: what cannot be moved leaves too little for it";
  }));
  EXPECT_EQ(b.grow(mib(2)), GPUROTA_OK) << "it has room";
  EXPECT_EQ(b.grow(gib(1)), GPUROTA_OK);
  const auto is_told = [](const proto::Event& event) {
    return event.type == proto::EventType::kTurnTrouble &&
           event.message.find("no longer fits") != std::string::npos;
  };
  EXPECT_TRUE(eventually([&] {
    const auto events = daemon.call(proto::Events{})->events;
    return std::any_of(events.begin(), events.end(), is_told);
  }));
  EXPECT_TRUE(holds(small));
  daemon.probe.remove_process(stranger.pid());
  b.set_busy(false);
  EXPECT_TRUE(eventually([&] { return holds(large); }));
}

// A lease that no longer fits anyway does not prevent a setting.
TEST_F(SwapLimitsTest, AQuantumIsSetAlsoWhereALeaseNoLongerFits) {
  const LeaseId large = make_lease();
  SwapClient a(daemon.tenant_socket());
  ASSERT_TRUE(a.join(large.value));
  ASSERT_EQ(a.grow(turn_of(large).limit_bytes), GPUROTA_OK);
  daemon.probe.set_process(turns().uuid, ::getpid(), turn_of(large).limit_bytes + gib(4));
  ASSERT_TRUE(eventually([&] { return turn_of(large).wired_bytes == gib(4); }));
  proto::SetGpus call;
  call.gpu_ids = {"0"};
  call.quantum = "2s";
  const auto set = daemon.call(call);
  EXPECT_TRUE(set) << set.error().message;
  EXPECT_EQ(turns().quantum_ms, 2000);
}

// A new daemon must not cut the memory to the lowered limit, because the memory was granted.
// Otherwise the daemon could never restore all of the memory, and would open the gate of a library
// that waits for the rest.
TEST_F(SwapLimitsTest, ATenantUnderALoweredLimitKeepsItsMemoryAndIsBoundedFromThenOn) {
  const LeaseId first = make_lease(), second = make_lease();
  auto a = std::make_unique<SwapClient>(daemon.tenant_socket());
  auto b = std::make_unique<SwapClient>(daemon.tenant_socket());
  join_both(*a, first, *b, second);
  ASSERT_TRUE(eventually([&] { return a->out() >= gib(8); }));
  proto::Update update;
  update.lease_id = first;
  update.memory = SizeSpec{gib(6), 0};
  const auto updated = daemon.call(update);
  ASSERT_TRUE(updated) << updated.error().message;
  EXPECT_TRUE(eventually([&] { return a->terms()->host_bytes >= gib(16).count(); }))
      << "all of it must have a place to go to";
  daemon.stop();
  const SwapClient::Has had = a->has(), others = b->has();
  daemon.start();
  a = std::make_unique<SwapClient>(daemon.tenant_socket());
  b = std::make_unique<SwapClient>(daemon.tenant_socket());
  ASSERT_TRUE(a->join(first.value, had) && b->join(second.value, others));
  EXPECT_TRUE(eventually([&] {
    const proto::TurnLease seen = turn_of(first);
    return seen.resident_bytes + seen.out_bytes == gib(16);
  }));
  EXPECT_EQ(a->grow(mib(64)), GPUROTA_REFUSED_LIMIT);
  b->set_busy(false);
  a->set_busy(true);
  EXPECT_TRUE(eventually([&] { return a->gate_open() && a->out().is_zero(); }));
  a->send_shrink(gib(12), {}, {});
  EXPECT_EQ(a->grow(gib(2)), GPUROTA_OK) << "what it freed it may have again, up to the new limit";
  EXPECT_EQ(a->grow(mib(64)), GPUROTA_REFUSED_LIMIT);
}

// The program reports the grant for its context, because it never learns the context's real size.
TEST_F(SwapLimitsTest, ContextOfAReconnectedProgramIsCountedAsMeasured) {
  const LeaseId id = make_lease();
  SwapClient first(daemon.tenant_socket());
  ASSERT_TRUE(first.join(id.value));
  ASSERT_EQ(first.grow({}, GPUROTA_SWAP_CONTEXT), GPUROTA_OK);
  ASSERT_EQ(first.grow(gib(1), GPUROTA_SWAP_WIRED), GPUROTA_OK);
  daemon.probe.set_process(turns().uuid, ::getpid(), gib(1) + mib(128));
  const SwapClient::Has had = first.has();
  ASSERT_EQ(had.wired, gib(1) + mib(600));
  first.disconnect();  // before it could report that the context exists
  for (const bool to_a_new_daemon : {false, true}) {
    if (to_a_new_daemon) {
      daemon.stop();
      daemon.start();
    }
    SwapClient again(daemon.tenant_socket());
    again.set_held(gib(1), 1);
    ASSERT_TRUE(again.join(id.value, had));
    EXPECT_TRUE(eventually([&] { return turn_of(id).wired_bytes == gib(1) + mib(128); }));
  }
}

// Until the memory of a context is measured, this memory is reserved and not reported. To the
// daemon, memory that a lying program reports as evicted looks the same. The daemon must not doubt
// an honest program because of its context.
TEST_F(SwapLimitsTest, AProgramThatComesBackWithMemoryOutIsNotDoubtedForItsContext) {
  const LeaseId first = make_lease(), second = make_lease();
  Child holder({SWAP_PROGRAM, daemon.tenant_socket(), std::to_string(second.value),
                std::to_string(gib(22).count()), "here"});
  daemon.stop();
  daemon.start();
  daemon.probe.set_process(turns().uuid, ::getpid(), mib(1200));
  daemon.probe.set_process(turns().uuid, holder.pid(), gib(22));
  SwapClient waits(daemon.tenant_socket());
  holder.write_line();
  ASSERT_EQ(holder.read_line(), "joined");
  waits.set_held({}, 1);
  ASSERT_TRUE(waits.join(first.value, {gib(2), {}, mib(1200)}));
  ASSERT_TRUE(eventually([&] { return holds(second); }));
  const int seen = daemon.probe.samples_read();
  ASSERT_TRUE(eventually([&] { return daemon.probe.samples_read() > seen + 10; }));
  EXPECT_EQ(turn_of(first).out_bytes, gib(2));
  const auto events = daemon.call(proto::Events{});
  ASSERT_TRUE(events);
  for (const proto::Event& event : events->events) {
    EXPECT_NE(event.type, proto::EventType::kTurnTrouble) << event.message;
  }
}

// max_tenants_per_lease may have been lowered while the process was not connected.
class CrowdedSwapTest : public SwapLimitsTest {
 protected:
  CrowdedSwapTest() : SwapLimitsTest(crowded()) {}
  static config::Config crowded() {
    config::Config config = with_turns();
    config.max_tenants_per_lease = 1;
    return config;
  }
  GpuUuid gpu() { return turns().uuid; }
};

TEST_F(CrowdedSwapTest, ReconnectingProcessIsAcceptedAboveTheLimitOfProcesses) {
  const LeaseId id = make_lease();
  daemon.set_config_text("max_tenants_per_lease = 4\n");
  ASSERT_TRUE(daemon.call(proto::Reload{}));
  const auto start_program = [&] {
    return std::make_unique<Child>(std::vector<std::string>{SWAP_PROGRAM, daemon.tenant_socket(),
                                                            std::to_string(id.value),
                                                            std::to_string(gib(2).count())});
  };
  const auto one = start_program(), two = start_program();
  ASSERT_EQ(one->read_line(), "granted");
  ASSERT_EQ(two->read_line(), "granted");
  SwapClient here(daemon.tenant_socket());
  ASSERT_TRUE(here.join(id.value));
  ASSERT_EQ(here.grow(gib(4)), GPUROTA_OK);
  daemon.probe.set_process(gpu(), ::getpid(), gib(4));
  daemon.set_config_text("max_tenants_per_lease = 1\n");
  ASSERT_TRUE(daemon.call(proto::Reload{}));
  const SwapClient::Has had = here.has();
  here.disconnect();
  SwapClient again(daemon.tenant_socket());
  EXPECT_TRUE(eventually([&] { return again.join(id.value, had); })) << "the same daemon knows it";
  daemon.stop();
  daemon.start();
  SwapClient there(daemon.tenant_socket());
  ASSERT_TRUE(there.join(id.value, had)) << "a new one sees what it has";
  const auto stranger = start_program();
  EXPECT_EQ(stranger->read_line(), "not welcome") << "it has nothing yet";
}

class EvictingTest : public SwapLimitsTest {
 protected:
  EvictingTest() : SwapLimitsTest(evicting()) {}
  static config::Config evicting() {
    config::Config config = with_turns();
    config.soft_limit.policy = config::SoftLimit::Policy::kEvict;
    config.soft_limit.throttle_delay = milliseconds(1);
    return config;
  }
};

TEST_F(EvictingTest, ALeaseAboveItsSoftLimitGivesUpItsTurnAndItsMemory) {
  const LeaseId first = make_lease(gib(20)), second = make_lease(gib(12));
  SwapClient a(daemon.tenant_socket()), b(daemon.tenant_socket());
  ASSERT_TRUE(a.join(first.value) && b.join(second.value));
  ASSERT_EQ(a.grow(gib(16)), GPUROTA_OK);
  b.set_busy(true);
  ASSERT_EQ(b.grow(gib(10)), GPUROTA_OK);
  a.set_busy(true);
  ASSERT_TRUE(eventually([&] { return holds(second) && turn_of(first).position == 1; }));
  EXPECT_EQ(turn_of(second).above_soft_limit, false);
  const std::uint32_t more = b.ask(gib(4));
  EXPECT_TRUE(eventually([&] { return holds(first); })) << "although its quantum is not over";
  EXPECT_EQ(turn_of(second).above_soft_limit, true);
  EXPECT_EQ(turn_of(second).soft_limit_bytes, gib(12));
  EXPECT_TRUE(eventually([&] { return b.out() >= gib(2); }));
  const proto::TurnGpu seen = turns();
  EXPECT_GE(seen.evictions, 1u);
  EXPECT_GE(seen.evicted_bytes, gib(2));
  EXPECT_GE(seen.handovers, 1u);
  a.set_busy(false);
  EXPECT_TRUE(eventually([&] { return b.answered(more).has_value(); })) << "in its turn";
  EXPECT_EQ(b.answered(more)->status, GPUROTA_OK) << "a soft limit refuses nothing";
}

TEST_F(EvictingTest, SliceIsWarnedButNotMoved) {
  proto::Acquire slice;
  slice.request.memory = SizeSpec{gib(6), 0};
  slice.request.soft_limit = SizeSpec{gib(3), 0};
  const auto refused = acquire(slice);
  EXPECT_EQ(refused.error().code, Code::kInvalid);
  EXPECT_THAT(refused.error().message, HasSubstr("which a slice does not allow"));
  EXPECT_THAT(refused.error().message, HasSubstr("--swap"));
  slice.request.soft_limit.reset();
  EXPECT_TRUE(acquire(slice));
}

class ThrottlingTest : public SwapLimitsTest {
 protected:
  ThrottlingTest() : SwapLimitsTest(throttling()) {}
  static config::Config throttling() {
    config::Config config = with_turns();
    config.soft_limit.policy = config::SoftLimit::Policy::kThrottle;
    config.soft_limit.throttle_delay = milliseconds(100);
    return config;
  }
};

TEST_F(ThrottlingTest, GrowthOfASwapLeaseAboveItsSoftLimitIsDelayed) {
  SwapClient tenant(daemon.tenant_socket());
  ASSERT_TRUE(tenant.join(make_lease(gib(2)).value));
  ASSERT_EQ(tenant.grow(gib(2)), GPUROTA_OK);
  const auto begun = std::chrono::steady_clock::now();
  ASSERT_EQ(tenant.grow(gib(1)), GPUROTA_OK);
  ASSERT_EQ(tenant.grow(gib(1)), GPUROTA_OK);
  EXPECT_GE(std::chrono::steady_clock::now() - begun, milliseconds(200));
  // The tenant leaves with an open question, which is never answered.
  (void)tenant.ask(gib(1));
  tenant.disconnect();
  EXPECT_TRUE(eventually([&] { return turns().used_bytes == gib(4); }));
}

class StoppingTest : public SwapLimitsTest {
 protected:
  StoppingTest() : SwapLimitsTest(stopping()) {}
  static config::Config stopping() {
    config::Config config = with_turns();
    config.soft_limit.policy = config::SoftLimit::Policy::kStop;
    config.soft_limit.grace = milliseconds(50);
    config.soft_limit.throttle_delay = milliseconds(1);
    return config;
  }
};

TEST_F(StoppingTest, SwapLeaseThatStaysAboveItsSoftLimitIsEnded) {
  const LeaseId id = make_lease(gib(2));
  Child child({SWAP_PROGRAM, daemon.tenant_socket(), std::to_string(id.value),
               std::to_string(gib(4).count())});
  ASSERT_EQ(child.read_line(), "granted");
  EXPECT_TRUE(eventually([&] { return lease(id).state != proto::LeaseState::kActive; }));
}

}  // namespace
}  // namespace gpurota::testing
