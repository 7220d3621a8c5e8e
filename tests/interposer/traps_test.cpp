// Real-world behaviour of programs (traps_probe.cpp): each program does something to itself that
// has broken similar libraries, and must stay within its limit.
#include "fixture.h"

#include <csignal>
#include <ctime>

namespace gpurota::interposer_test {
namespace {

class TrapTest : public InterposerTest {
 protected:
  std::unique_ptr<Program> trap(const std::string& scenario) {
    return start(PROBE_TRAPS, scenario, lease());
  }
};

class EachTrap : public TrapTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(EachTrap, IsSurvivedAndHeldToTheLimit) {
  EXPECT_EQ(trap(GetParam())->wait(), 0);
  EXPECT_EQ(daemon_->bad_messages(), 0);
  // Nothing is left charged.
  EXPECT_EQ(trap("exhaust")->wait(), 0);
}

INSTANTIATE_TEST_SUITE_P(
    Traps, EachTrap,
    ::testing::Values("fork_then_exec", "vfork_then_exec", "spawned", "many_forks_at_once",
                      "fork_while_others_allocate", "raw_clone", "thousands_of_threads",
                      "lookups_at_once", "deepbind_on_the_driver", "dlmopen_of_the_driver",
                      "opened_by_path", "asked_with_a_version", "closed_again", "missing_functions",
                      "signals_reset", "descriptors_closed_before",
                      "connection_closed_while_others_allocate", "descriptor_table_does_not_grow",
                      "environment_and_umask"),
    [](const auto& each) { return std::string(each.param); });

TEST_F(TrapTest, EachGpuOfALeaseHasItsOwnLimit) {
  daemon_.reset();
  daemon_ = std::make_unique<FakeDaemon>(
      socket_path(), std::vector<FakeGpu>{{uuids_[1], 128 * kMiB}, {uuids_[0], 256 * kMiB}}, 0);
  EXPECT_EQ(trap("two_gpus")->wait(), 0);
  EXPECT_EQ(daemon_->bad_messages(), 0);
}

TEST_F(TrapTest, CancelledThreadKeepsNoLock) {
  auto extra = lease();
  extra["GPUROTA_WAIT_MS"] = "400";
  const auto program = start(PROBE_TRAPS, "cancelled_thread", extra);
  ASSERT_EQ(program->read_line(), "ready");
  daemon_.reset();
  program->write_line("go");
  EXPECT_EQ(program->wait(), 0);
}

// The program is killed at a different place in the code each time. Its memory must be free again,
// and the daemon must continue.
TEST_F(TrapTest, KilledAtAnyInstructionNothingStaysCharged) {
  for (long us = 0; us < 30; ++us) {
    const auto program = trap("busy");
    ASSERT_EQ(program->read_line(), "ready");
    const timespec pause{0, us * 37'000};
    ::nanosleep(&pause, nullptr);
    program->signal(SIGKILL);
    EXPECT_EQ(program->wait(), 128 + SIGKILL);
  }
  EXPECT_EQ(daemon_->bad_messages(), 0);
  EXPECT_EQ(trap("exhaust")->wait(), 0);
}

TEST_F(TrapTest, AForkedChildThatLivesOnBecomesATenantOfItsOwn) {
  const auto program = trap("busy_with_a_child");
  ASSERT_EQ(program->read_line(), "ready");
  program->signal(SIGKILL);
  EXPECT_EQ(program->read_line(), "held");
  EXPECT_EQ(daemon_->bad_messages(), 0);
}

}  // namespace
}  // namespace gpurota::interposer_test
