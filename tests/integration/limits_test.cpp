// Soft limits, lowered limits and processes that bypass the library, with a real daemon.
#include "running_daemon.h"
#include "wire_tenant.h"

#include <gtest/gtest.h>

#include <unistd.h>

namespace gpurota::testing {
namespace {

// A run lease of 8 GiB with its tenant, a process other than the test itself.
class LimitsTest : public ::testing::Test {
 protected:
  void begin(config::Config config, std::optional<Bytes> soft_limit = {}) {
    daemon.emplace(std::move(config));
    connection.emplace(daemon->connect());
    proto::Acquire call;
    call.request.memory = SizeSpec{gib(8), 0};
    if (soft_limit) call.request.soft_limit = SizeSpec{*soft_limit, 0};
    const auto made = connection->call(call);
    ASSERT_TRUE(made) << made.error().message;
    lease = made->lease;
    command.emplace(std::vector<std::string>{TENANT_PROGRAM, daemon->tenant_socket(), "holds",
                                             std::to_string(lease.lease_id.value)});
    ASSERT_EQ(command->read_line(), "waits");
    ASSERT_TRUE(connection->call(proto::Start{lease.lease_id, command->pid(), {}}));
  }
  // Makes the command request this much; returns the answer that it prints.
  std::string grow(Bytes bytes) {
    command->write_line(std::to_string(bytes.count()));
    return command->read_line();
  }
  bool gone() {
    return eventually([&] { return daemon->call(proto::Status{})->leases.empty(); });
  }
  void wait_for_samples(int count) {
    const int seen = daemon->probe.samples_read();
    EXPECT_TRUE(eventually([&] { return daemon->probe.samples_read() > seen + count; }));
  }

  std::optional<RunningDaemon> daemon;
  std::optional<client::Connection> connection;
  std::optional<Child> command;
  proto::Lease lease;
};

TEST_F(LimitsTest, LeaseAboveItsSoftLimitEndsAfterTheGracePeriodIfConfigured) {
  config::Config config = RunningDaemon::quick();
  config.soft_limit.policy = config::SoftLimit::Policy::kStop;
  config.soft_limit.grace = std::chrono::milliseconds(100);
  begin(config, gib(2));
  ASSERT_EQ(grow(gib(1)), "granted");
  wait_for_samples(10);
  EXPECT_EQ(daemon->call(proto::Status{})->leases[0].state, proto::LeaseState::kActive);
  ASSERT_EQ(grow(gib(3)), "granted");
  EXPECT_TRUE(command->ended());
  EXPECT_TRUE(gone());
}

TEST_F(LimitsTest, LeaseAboveAWarningSoftLimitContinues) {
  begin(RunningDaemon::quick(), gib(2));
  ASSERT_EQ(grow(gib(4)), "granted");
  wait_for_samples(10);
  EXPECT_EQ(daemon->call(proto::Status{})->leases[0].state, proto::LeaseState::kActive);
}

TEST_F(LimitsTest, GrowthAboveAThrottlingSoftLimitIsDelayedAndNotRefused) {
  config::Config config = RunningDaemon::quick();
  config.soft_limit.policy = config::SoftLimit::Policy::kThrottle;
  config.soft_limit.throttle_delay = std::chrono::milliseconds(50);
  begin(config, gib(2));
  ASSERT_EQ(grow(gib(2)), "granted");
  const auto begun = std::chrono::steady_clock::now();
  for (int i = 0; i < 4; ++i) ASSERT_EQ(grow(gib(1)), "granted");
  EXPECT_GE(std::chrono::steady_clock::now() - begun, std::chrono::milliseconds(200));
  EXPECT_EQ(daemon->granted(), gib(6));
}

TEST_F(LimitsTest, LoweredLimitBoundsNewMemoryAndLeavesTheRest) {
  begin(RunningDaemon::quick());
  ASSERT_EQ(grow(gib(6)), "granted");
  ASSERT_TRUE(daemon->call(proto::Update{lease.lease_id, SizeSpec{gib(4), 0}, {}, {}}));
  EXPECT_EQ(grow(mib(1)), "refused");
  wait_for_samples(10);
  EXPECT_EQ(daemon->call(proto::Status{})->leases[0].state, proto::LeaseState::kActive);
}

TEST_F(LimitsTest, LeaseAboveALoweredLimitEndsAfterTheGracePeriod) {
  config::Config config = RunningDaemon::quick();
  config.lowered_limit.policy = config::LoweredLimit::Policy::kStop;
  config.lowered_limit.grace = std::chrono::milliseconds(100);
  begin(config);
  ASSERT_EQ(grow(gib(6)), "granted");
  wait_for_samples(5);
  ASSERT_TRUE(daemon->call(proto::Update{lease.lease_id, SizeSpec{gib(4), 0}, {}, {}}));
  EXPECT_TRUE(command->ended());
  EXPECT_TRUE(gone());
}

TEST_F(LimitsTest, LoweredLimitRecallsHeadroomSoThatItCannotBecomeMemory) {
  RunningDaemon own;
  const proto::Lease mine = own.keep_slice(gib(8)).lease;
  WireTenant tenant(own.tenant_socket());
  ASSERT_EQ(tenant.hello(mine.lease_id.value), GPUROTA_OK);
  ASSERT_EQ(tenant.grow(0, gib(6).count())->status, GPUROTA_OK);
  ASSERT_TRUE(own.call(proto::Update{mine.lease_id, SizeSpec{gib(4), 0}, {}, {}}));
  const auto first = tenant.next_recall();
  ASSERT_TRUE(first);
  tenant.answer_recall(*first, 0);  // all granted memory is in use
  const auto later = tenant.next_recall();
  ASSERT_TRUE(later) << "what is freed while it is above must not be allocated again";
  tenant.answer_recall(*later, gib(5).count());
  EXPECT_TRUE(eventually([&] { return own.granted() == gib(1); }));
}

// A static binary, or a program under `env -i`, is not a tenant, but NVML lists the process.
TEST_F(LimitsTest, ProcessThatBypassesTheLibraryIsChargedByAncestry) {
  begin(RunningDaemon::quick());
  command->write_line("fork");
  const pid_t child = std::stoi(command->read_line());
  daemon->probe.set_process(lease.gpus[0].uuid, child, gib(5));
  EXPECT_TRUE(eventually([&] { return daemon->granted() == gib(5); }));
  EXPECT_EQ(grow(gib(4)), "refused") << "its memory is the lease's";
  EXPECT_EQ(daemon->call(proto::Status{})->leases[0].gpus[0].used_bytes, gib(5));
  const auto processes = daemon->call(proto::ListProcesses{});
  ASSERT_EQ(processes->processes.size(), 1u);
  EXPECT_EQ(processes->processes[0].lease_id, lease.lease_id);
  EXPECT_FALSE(processes->processes[0].tenant);
}

TEST_F(LimitsTest, OrphanedChildStaysInTheLease) {
  begin(RunningDaemon::quick());
  command->write_line("orphan");
  const pid_t orphan = std::stoi(command->read_line());
  ASSERT_GT(orphan, 0);
  // While the process still has its parent, the daemon finds it among the command's descendants, or
  // in the command's cgroup.
  daemon->probe.set_process(lease.gpus[0].uuid, orphan, gib(3));
  EXPECT_TRUE(eventually([&] { return daemon->granted() == gib(3); }));
  command->write_line("let go");
  EXPECT_EQ(command->read_line(), "orphaned");
  wait_for_samples(5);
  EXPECT_EQ(daemon->granted(), gib(3));
}

TEST_F(LimitsTest, AProcessOfAnotherUserInTheLeasesCgroupIsChargedToTheLease) {
  if (::geteuid() != 0) GTEST_SKIP() << "another user's process needs root";
  begin(RunningDaemon::quick());
  command->write_line("as nobody");
  const pid_t child = std::stoi(command->read_line());
  daemon->probe.set_process(lease.gpus[0].uuid, child, gib(2));
  EXPECT_TRUE(eventually([&] { return daemon->granted() == gib(2); }));
  const auto processes = daemon->call(proto::ListProcesses{});
  ASSERT_EQ(processes->processes.size(), 1u);
  EXPECT_EQ(processes->processes[0].uid, 65534u);
  EXPECT_EQ(processes->processes[0].lease_id, lease.lease_id);
}

}  // namespace
}  // namespace gpurota::testing
