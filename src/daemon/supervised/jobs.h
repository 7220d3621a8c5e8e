// The jobs: commands that the daemon looks after. What happens when is decided by jobs/supervision.h;
// here it is carried out. State thread only.
//
// A run is a keeper (src/keeper), which executes `gpurota run` as the job's owner: it waits in the queue
// and holds its lease like anybody's. A keeper outlives the daemon; the next one finds it by the
// lock that it holds, and never starts a second. Every change is in the store before it is seen.
//
// jobs_restore.cpp: after a start of the daemon. jobs_change.cpp: jobs are added and changed.
#pragma once

#include "daemon/leases/tracked_process.h"
#include "daemon/leases/unstored.h"
#include "daemon/supervised/keeper_cgroups.h"
#include "daemon/users/user_budgets.h"
#include "jobs/record.h"
#include "jobs/supervision.h"
#include "keeper/launcher.h"
#include "ports/event_loop.h"
#include "ports/job_store.h"
#include "ports/processes.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::daemon {

struct JobEntry {
  std::uint64_t id = 0;
  uid_t uid = 0;
  std::string user;
  jobs::JobSpec spec;
  jobs::Supervision life;
  std::optional<TrackedProcess> keeper{};  // of the run that is on, or who asks for one
  bool starting = false;                   // it is that
  std::optional<ports::ProcessId>
      runner{};                    // the `gpurota run` of the run, once it has come to its lease
  bool adopted = false;            // the run is one that an earlier daemon started
  std::optional<LeaseId> lease{};  // of the run
  std::string refusal{};           // why it got none
  ports::EventLoop::SourcePtr timer{};
  ports::EventLoop::SourcePtr look_again{};  // whether its keeper lives could not be told
  UserBudgets::Held log{};                   // what its output may take

  bool is_removed() const { return life.state().removed; }
};

class Jobs {
 public:
  // Of one user.
  static constexpr std::size_t kMostJobs = 256;
  static constexpr std::size_t kMostBytes = std::size_t{1} << 20;  // of what they say

  struct Parts {
    ports::EventLoop& loop;
    ports::JobStore* store = nullptr;  // null: there are no jobs
    ports::Processes& processes;
    std::function<WallTime()> wall_clock;
    std::function<Duration()> grace;
    std::string directory;    // of the jobs' files
    std::string keeper;       // gpurota-keeper; empty: not installed
    std::string systemd_run;  // empty: keepers are our children
    std::string gpurota;      // empty: not installed
    std::string runtime_dir;  // where `gpurota run` finds us
    uid_t own_uid = 0;        // ours: root's daemon runs jobs of everybody
    UserBudgets& budgets;
  };

  explicit Jobs(Parts parts);

  // When the sockets are open. Jobs that ran or waited before a reboot are started in their order.
  Result<void> restore();

  // Added and started.
  Result<const JobEntry*> add(uid_t uid, jobs::JobSpec spec);
  // Its next start is made of this.
  Result<void> change(std::uint64_t id, jobs::JobSpec spec);
  struct Wanted {
    jobs::JobSpec spec;
    bool start = true;  // if it is not there yet
  };
  enum class Change { kAdded, kChanged, kUnchanged };
  // Jobs of these names are changed, the others added: all or none.
  Result<std::vector<Change>> apply(uid_t uid, std::vector<Wanted> wanted);
  enum class What { kStart, kStop, kRestart, kRemove };
  // `force`: remove although it runs, which stops it first, and although others are to be started after it,
  // which name it no more then.
  Result<void> control(std::uint64_t id, What what, bool force);

  // What could not be stored (the disk was full) is, if it can be now.
  void store_again();

  const std::map<std::uint64_t, JobEntry>& entries() const { return entries_; }
  const JobEntry* find(uid_t uid, const std::string& name) const;
  Result<jobs::LogPart> read_log(std::uint64_t id, std::optional<jobs::LogCursor> from,
                                 std::size_t most) const;

  // The job whose run `pid`, a `gpurota run`, is.
  const JobEntry* job_of(const ports::ProcessId& run) const;
  // What came of its asking for a lease: none, for that reason; or this one, under which it starts.
  void on_refused(const ports::ProcessId& run, const std::string& why);
  void on_held(const ports::ProcessId& run, LeaseId lease);
  // Somebody took it out of the queue.
  void on_cancelled(const ports::ProcessId& run, const std::string& why);
  // The time of a run under a reservation is over, and its command is being ended.
  void on_time_over(const ports::ProcessId& run, const std::string& why);
  // Its lease, or the reservation that it runs under, is being ended, and its processes with it.
  enum class LeaseEnd { kTakenAway, kOverLimit, kTimeOver };
  void on_lease_ending(LeaseId lease, LeaseEnd end, const std::string& why);
  // After restore(): a lease of one of them, or a reservation that it runs under, that the last daemon left.
  void on_lease_restored(LeaseId lease, const ports::ProcessId& holder);

 private:
  jobs::Moment now() const;
  jobs::Policy policy_of(const jobs::JobSpec& spec) const;
  JobEntry* entry_of(const ports::ProcessId& run);
  Result<void> check_jobs_of(uid_t uid) const;
  // That the user may have these beside their others.
  Result<void> check_together(uid_t uid, const std::vector<Wanted>& wanted) const;
  Result<void> check_logs(uid_t uid, const std::vector<Wanted>& wanted) const;
  void count_log(JobEntry& job) const;
  Result<void> check_after(uid_t uid, const std::vector<Wanted>& wanted) const;
  std::vector<std::uint64_t> started_after(const JobEntry& job) const;
  Result<void> check_removal(const JobEntry& job) const;
  // What is started after it names it no more.
  Result<void> unname(const JobEntry& job);
  JobEntry make_entry(std::uint64_t id, uid_t uid, jobs::JobSpec spec) const;
  ports::StoredJob row_of(const JobEntry& job) const;
  Result<std::optional<TrackedProcess>> find_keeper(std::uint64_t id);
  Result<bool> hand_over(JobEntry& job);
  void look_again(JobEntry& job);
  jobs::Actions outcome(JobEntry& job);
  Result<void> take_up(const ports::StoredJob& stored, std::vector<std::uint64_t>& rebooted);
  void start_after_boot(const std::vector<std::uint64_t>& rebooted);
  void carry_out(JobEntry& job, const jobs::Actions& actions);
  void launch(JobEntry& job);
  void on_keeper_death(std::uint64_t id);
  void arm(JobEntry& job);
  Result<void> save(const JobEntry& job) const;
  void save_or_say(const JobEntry& job);
  Result<void> forget(std::uint64_t id);
  void settle(std::uint64_t id);  // after any change

  Parts parts_;
  keeper::Launcher launcher_;
  KeeperCgroups cgroups_{parts_.loop, parts_.processes};
  std::map<std::uint64_t, JobEntry> entries_;
  Unstored unstored_{"job"};
};

}  // namespace gpurota::daemon
