// Jobs and all events that can happen to them, in random order, with daemons that are killed and
// machines that go down. After each step the rules of a job's life must hold. A failure prints its
// seed.
#include "jobs/supervision.h"

#include <gtest/gtest.h>

#include <random>

namespace gpurota::jobs {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The outside of one job: its lease and its process, as a daemon would keep them.
class World {
 public:
  explicit World(unsigned seed) : random_(seed), policy_(any_policy()), job_(policy_) {}

  void step() {
    now_.at += milliseconds(random_() % 3'000);
    now_.wall += milliseconds(1);
    switch (random_() % 14) {
      case 0:
        wanted_ = true;
        carry_out(job_.start(now_));
        break;
      case 1:
        wanted_ = false;
        carry_out(job_.stop(now_));
        break;
      case 2:
        wanted_ = true;
        carry_out(job_.restart(now_));
        break;
      case 3:
      case 4:
        grant();
        break;
      case 5:
      case 6:
        end_process();
        break;
      case 7:
        over_limit();
        break;
      case 8:
        lose_lease();
        break;
      case 9:
        new_daemon();
        break;
      case 10:
        reboot();
        break;
      default:
        carry_out(job_.on_time(now_));
        break;
    }
    check();
  }

 private:
  Policy any_policy() {
    Policy policy;
    policy.restart = static_cast<RestartPolicy>(random_() % 3);
    policy.grace = seconds(2);
    return policy;
  }

  void carry_out(const Actions& actions) {
    for (const Action action : actions) {
      switch (action) {
        case Action::kRequestLease:
          ASSERT_FALSE(leased_) << "a second lease";
          requested_ = true;
          break;
        case Action::kCancelRequest:
          requested_ = false;
          break;
        case Action::kSpawn:
          ASSERT_TRUE(leased_) << "run without a lease";
          ASSERT_FALSE(process_) << "run twice";
          process_ = true;
          terminated_ = false;
          break;
        case Action::kTerminate:
          ASSERT_TRUE(process_);
          terminated_ = true;
          break;
        case Action::kKill:
          ASSERT_TRUE(terminated_) << "KILL without TERM";
          process_ = false;
          carry_out(job_.on_exit(now_, 9, true));
          break;
        case Action::kReleaseLease:
          ASSERT_FALSE(process_) << "the lease goes while the run is on";
          leased_ = false;
          break;
      }
    }
  }

  void grant() {
    if (!requested_) return;
    requested_ = false;
    leased_ = true;
    carry_out(job_.on_lease(now_));
  }
  void end_process() {
    if (!process_) return;
    process_ = false;
    const bool signalled = random_() % 3 == 0;
    carry_out(job_.on_exit(now_, signalled ? 11 : static_cast<int>(random_() % 2), signalled));
  }
  void over_limit() {
    if (!process_) return;
    terminated_ = true;  // by the end of its lease
    if (random_() % 2 == 0) job_.on_over_limit(now_, "too much");
    if (random_() % 2 == 0) job_.on_timeout(now_, "too long");
    // A second reason to end the run may come at the same time.
    if (job_.state().phase == Phase::kRunning) terminated_ = false;
  }
  void lose_lease() {
    if (!process_) return;
    if (job_.state().phase == Phase::kRunning) wanted_ = false;
    terminated_ = true;
    job_.on_lease_lost(now_, "released");
  }
  // kill -9: the state is what was stored, the process lives on (or has ended meanwhile).
  void new_daemon() {
    Supervision next(policy_, job_.state());
    job_ = next;
    if (process_ && random_() % 4 == 0) {
      process_ = false;
      carry_out(job_.on_exit_unseen(now_));
      return;
    }
    requested_ = false;
    carry_out(job_.on_adopted(now_));
  }
  void reboot() {
    Supervision next(policy_, job_.state());
    job_ = next;
    process_ = leased_ = requested_ = false;
    carry_out(job_.on_boot(now_));
  }

  void check() {
    const JobState& state = job_.state();
    const bool runs = state.phase == Phase::kRunning || state.phase == Phase::kStopping;
    ASSERT_EQ(runs, process_);
    ASSERT_EQ(runs, leased_);
    ASSERT_EQ(state.phase == Phase::kWaiting, requested_);
    ASSERT_LE(state.history.size(), Supervision::kMaxHistory);
    if (!wanted_) {
      // A stop stays in effect, whatever happens later.
      ASSERT_TRUE(state.phase == Phase::kStopped || state.phase == Phase::kStopping ||
                  state.phase == Phase::kFinished || state.phase == Phase::kFailed)
          << to_string(state.phase);
    }
    // A job that must end or start later has a time for that.
    if (state.phase == Phase::kBackingOff || state.phase == Phase::kStopping) {
      ASSERT_TRUE(job_.next_time());
    }
    for (const RunEnd& end : state.history) ASSERT_NE(to_string(end.reason), nullptr);
  }

  std::mt19937 random_;
  Policy policy_;
  Supervision job_;
  Moment now_{TimePoint(seconds(100)), WallTime(seconds(100))};
  bool wanted_ = false, requested_ = false, leased_ = false, process_ = false, terminated_ = false;
};

TEST(SupervisionSimulation, RulesHoldUnderRandomEvents) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world(seed);
    for (int i = 0; i < 300; ++i) {
      world.step();
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace gpurota::jobs
