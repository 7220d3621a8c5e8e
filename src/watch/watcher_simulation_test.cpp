// A machine with users who keep and break the rules, at random from a seed. In every run, each
// finding begins and ends once; a process that breaks a rule is found at the next reading; a
// process that keeps the rules is never in a finding and never stopped; and no process is stopped
// that the policy does not stop. A program that is not limited although libgpurota is loaded is
// found after a while.
#include "watch/classify.h"
#include "watch/watcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace gpurota::watch {
namespace {

using namespace std::chrono_literals;

class Machine {
 public:
  explicit Machine(unsigned seed) : random_(seed) {
    policy_.unused_after = 20s;
    policy_.unused_grace = 10s;
    policy_.stop_grace = 3s;
    policy_.ignored = {{0, "/usr/bin/ignored"}};
    // By user: 0 report, 1 notify, 2 stop, and so on.
    policy_.action = [](FindingKind, std::optional<uid_t> uid) {
      return static_cast<Action>(uid.value_or(0) % 3);
    };
  }

  void step() {
    now_ += std::chrono::milliseconds(50 + pick(500));
    for (int i = static_cast<int>(pick(3)); i > 0; --i) change();
    Reading reading;
    reading.gpu = GpuUuid{"GPU-0"};
    reading.leases = leases_;
    reading.processes = processes_;
    reading.used = Bytes();
    for (const SeenProcess& process : processes_) *reading.used += process.used.value_or(Bytes());
    count_silent(reading);
    for (const Step& step : watcher_.decide(reading, policy_, now_)) check(step, reading);
    check_all_found(reading);
  }
  int begun() const { return begun_; }
  int ended() const { return ended_; }
  int stopped() const { return stopped_; }
  int not_limited() const { return not_limited_; }
  std::size_t open() const { return open_.size(); }
  void clear() {
    processes_.clear();
    leases_.clear();
    for (int i = 0; i < 100; ++i) {
      now_ += 250ms;
      Reading reading;
      reading.gpu = GpuUuid{"GPU-0"};
      for (const Step& step : watcher_.decide(reading, policy_, now_)) check(step, reading);
    }
  }

 private:
  std::uint64_t pick(std::uint64_t n) { return random_() % n; }

  void change() {
    const std::uint64_t what = pick(10);
    if (what < 4 && processes_.size() < 12) {
      add_process();
    } else if (what < 6 && !processes_.empty()) {
      processes_.erase(processes_.begin() + static_cast<long>(pick(processes_.size())));
    } else if (what < 8 && !processes_.empty()) {
      SeenProcess& any = processes_[pick(processes_.size())];
      if (any.used) any.used = mib(pick(3000));
      if (any.lease && !any.tenant && pick(3) == 0) any.library = some_library();
    } else if (what == 8 && leases_.size() < 4) {
      add_lease();
    } else if (what == 9 && !leases_.empty()) {
      leases_.erase(leases_.begin() + static_cast<long>(pick(leases_.size())));
    }
  }

  void add_process() {
    SeenProcess process;
    process.pid = static_cast<pid_t>(100 + pick(40));  // pids are reused
    std::erase_if(processes_, [&](const SeenProcess& p) { return p.pid == process.pid; });
    process.start_ticks = ++ticks_;
    process.uid = static_cast<uid_t>(pick(6));
    process.used = mib(pick(3000));
    process.graphics = pick(10) == 0;
    process.executable = pick(5) == 0 ? "/usr/bin/ignored" : "/usr/bin/python3";
    process.container = pick(6) == 0;
    if (!leases_.empty() && pick(2) == 0) {
      const SeenLease& lease = leases_[pick(leases_.size())];
      process.lease = lease.id;
      process.uid = lease.uid;
      process.tenant = lease.limit && pick(2) == 0;
      if (lease.limit && !process.tenant) process.library = some_library();
    } else if (pick(10) == 0) {
      process.gone = true;
      process.uid.reset();
      process.start_ticks = 0;
    }
    processes_.push_back(process);
  }

  Library some_library() {
    constexpr Library kAll[] = {Library::kNotAsked, Library::kUnknown, Library::kAbsent,
                                Library::kSilent, Library::kAway};
    return kAll[pick(std::size(kAll))];
  }

  void add_lease() {
    SeenLease lease;
    lease.id = LeaseId{++last_lease_};
    lease.uid = static_cast<uid_t>(pick(6));
    if (!leases_.empty() || pick(2) == 0) lease.limit = mib(1000 + pick(3000));
    lease.takes_all_of_user = pick(4) == 0;
    lease.starts_containers = pick(4) == 0;
    if (leases_.empty() || leases_.front().limit) leases_.push_back(lease);
  }

  Bytes used_by(const SeenLease& lease, const Reading& reading) const {
    Bytes sum;
    for (const SeenProcess& p : reading.processes) {
      const SeenLease* owner = owning_lease(p, reading);
      if (owner && owner->id == lease.id) sum += p.used.value_or(Bytes());
    }
    return sum;
  }
  // Since when each process has been unlimited without a break, as seen by this test.
  void count_silent(const Reading& reading) {
    std::map<std::uint64_t, TimePoint> before = std::move(silent_);
    silent_.clear();
    for (const SeenProcess& p : reading.processes) {
      const SeenLease* owner = owning_lease(p, reading);
      const bool silent = p.library == Library::kSilent && owner && owner->limit &&
                          !p.used.value_or(mib(1)).is_zero() && !is_ignored(p, policy_);
      if (silent)
        silent_[p.start_ticks] = before.contains(p.start_ticks) ? before[p.start_ticks] : now_;
    }
  }
  bool is_long_silent(const SeenProcess& process) const {
    const auto since = silent_.find(process.start_ticks);
    return since != silent_.end() && now_ - since->second >= policy_.silent_patience;
  }
  // Whether the process keeps the rules: libgpurota limits it and its lease is within its limit, or
  // the watch ignores it.
  bool is_innocent(const SeenProcess& process, const Reading& reading) const {
    const SeenLease* lease = covering_lease(process, reading);
    if (!lease) return is_ignored(process, policy_);
    if (is_long_silent(process)) return false;
    return !lease->limit || used_by(*lease, reading) <= *lease->limit + policy_.tolerance;
  }

  void check(const Step& step, const Reading& reading) {
    const Finding& finding = step.finding;
    switch (step.what) {
      case Step::What::kBegun:
        ++begun_;
        EXPECT_TRUE(open_.insert(finding.id).second) << "begun twice";
        EXPECT_TRUE(known_.insert(finding.id).second) << "begun again";
        for (const SeenProcess& p : finding.processes) {
          EXPECT_FALSE(is_innocent(p, reading));
          if (finding.kind == FindingKind::kNotLimited) {
            EXPECT_TRUE(is_long_silent(p));
            ++not_limited_;
          }
        }
        break;
      case Step::What::kEnded:
        ++ended_;
        EXPECT_EQ(open_.erase(finding.id), 1u) << "ended without having begun";
        break;
      case Step::What::kRelease:
        EXPECT_EQ(finding.action, Action::kStop);
        EXPECT_EQ(finding.kind, FindingKind::kUnused);
        break;
      case Step::What::kTerminate:
      case Step::What::kKill:
        EXPECT_EQ(finding.action, Action::kStop);
        EXPECT_TRUE(open_.contains(finding.id)) << "stopped before it was reported";
        for (const SeenProcess& p : step.targets) {
          ++stopped_;
          EXPECT_FALSE(is_innocent(p, reading)) << "stopped a process within its lease and limit";
          EXPECT_EQ(finding.uid.value_or(0) % 3, 2u);
          EXPECT_TRUE(finding.kind != FindingKind::kNotLimited || is_long_silent(p));
          EXPECT_NE(p.start_ticks, 0u);
        }
        break;
    }
  }

  // Each process that breaks a rule is in a finding now.
  void check_all_found(const Reading& reading) {
    const std::vector<Finding> open = watcher_.open();
    const auto found = [&](FindingKind kind, const SeenProcess& process) {
      return std::any_of(open.begin(), open.end(), [&](const Finding& f) {
        return f.kind == kind &&
               std::any_of(f.processes.begin(), f.processes.end(),
                           [&](const SeenProcess& p) { return p.pid == process.pid; });
      });
    };
    const bool whole = std::any_of(leases_.begin(), leases_.end(),
                                   [](const SeenLease& lease) { return !lease.limit; });
    const bool hidden = std::any_of(reading.processes.begin(), reading.processes.end(),
                                    [](const SeenProcess& p) { return p.gone; });
    for (const SeenProcess& p : reading.processes) {
      EXPECT_TRUE(!is_long_silent(p) || hidden || found(FindingKind::kNotLimited, p)) << p.pid;
      if (p.gone || is_ignored(p, policy_) || covering_lease(p, reading)) continue;
      if (whole) {
        EXPECT_TRUE(found(FindingKind::kForeignUse, p)) << p.pid;
      }
      if (!whole && *p.used > policy_.threshold) {
        EXPECT_TRUE(found(FindingKind::kUnreservedUse, p)) << p.pid;
      }
    }
    for (const SeenLease& lease : reading.leases) {
      if (!lease.limit || used_by(lease, reading) <= *lease.limit + policy_.tolerance) continue;
      EXPECT_TRUE(std::any_of(open.begin(), open.end(), [&](const Finding& f) {
        return f.kind == FindingKind::kOverLimit && f.lease == lease.id;
      }));
    }
  }

  std::mt19937_64 random_;
  Policy policy_;
  Watcher watcher_;
  std::vector<SeenProcess> processes_;
  std::vector<SeenLease> leases_;
  std::set<FindingId> open_, known_;
  TimePoint now_{};
  std::uint64_t ticks_ = 0, last_lease_ = 0;
  std::map<std::uint64_t, TimePoint> silent_;  // by start time
  int begun_ = 0, ended_ = 0, stopped_ = 0, not_limited_ = 0;
};

class WatcherSimulation : public testing::TestWithParam<unsigned> {};

TEST_P(WatcherSimulation, EveryFindingIsReportedOnceAndNoInnocentIsStopped) {
  Machine machine(GetParam());
  for (int i = 0; i < 3000 && !testing::Test::HasFailure(); ++i) machine.step();
  EXPECT_GT(machine.begun(), 20);
  EXPECT_GT(machine.stopped(), 5);
  EXPECT_GT(machine.not_limited(), 0);
  machine.clear();
  EXPECT_EQ(machine.open(), 0u);
  EXPECT_EQ(machine.begun(), machine.ended());
}

INSTANTIATE_TEST_SUITE_P(Seeds, WatcherSimulation, testing::Range(1u, 41u));

}  // namespace
}  // namespace gpurota::watch
