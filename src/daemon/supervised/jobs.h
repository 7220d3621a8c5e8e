// The jobs: commands that the daemon looks after. Jobs are a policy over the supervisor, which runs
// them. jobs/supervision.h decides, and this class carries the decisions out. job_rules.h says
// which jobs a user may have. Every change is in the store before a client sees it. State thread
// only.
//
// jobs_restore.cpp takes up the jobs after a start of the daemon. jobs_change.cpp adds and changes
// jobs.
#pragma once

#include "core/notice_kind.h"
#include "daemon/supervised/job_items.h"
#include "daemon/supervised/job_rules.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::daemon {

class Jobs final : Supervisor::Policy {
 public:
  struct Parts {
    ports::EventLoop& loop;
    ports::Processes& processes;
    Supervisor::Parts supervisor;
    std::function<WallTime()> wall_clock;
    std::function<Duration()> grace;
    std::string directory;  // of the jobs' files
    // A job has ended and is not started again (kJobFinished, kJobFailed), or never starts
    // (kJobCancelled). Empty: nobody is notified.
    std::function<void(uid_t owner, NoticeKind kind, const std::string& job,
                       const std::string& why)>
        on_end = {};
  };

  explicit Jobs(Parts parts);

  // Call when the sockets are open. Starts the jobs that ran or waited before a reboot, in their
  // order.
  Result<void> restore();

  // Adds and starts a job.
  Result<const JobEntry*> add(uid_t uid, jobs::JobSpec spec);
  // Changes the spec of a job. The next start of the job uses the new spec.
  Result<void> change(std::uint64_t id, jobs::JobSpec spec);
  enum class Change { kAdded, kChanged, kUnchanged };
  // Changes the jobs of these names, and adds those that are not there: all or none.
  Result<std::vector<Change>> apply(uid_t uid, std::vector<WantedJob> wanted);
  enum class What { kStart, kStop, kRestart, kRemove };
  // Removing a running job stops the job first; jobs that start after the job then no longer name
  // it. kInvalid: the job cannot be started, as a job before it in its chain has failed. `by`: the
  // user who does this, if it is not the owner: "by root (administrator)".
  Result<void> control(std::uint64_t id, What what, const std::string& by = {});

  // Stores again, if possible, what could not be stored because the disk was full.
  void store_again() { supervisor_.store_again(); }

  const JobEntries& entries() const { return entries_; }
  bool is_on(const JobEntry& job) const {
    return supervisor_.is_on(job.id) || !job.items.on().empty();
  }
  // The items of arrays.
  JobItems& items() { return items_; }
  // The folder of a job's log, for keeper::read_log().
  std::string log_folder(std::uint64_t id) const { return supervisor_.files().log_folder(id); }

  // The job whose `gpurota run` is this process; nullptr: there is none.
  const JobEntry* job_of(const ports::ProcessId& run) const;
  // The run's request for a lease was refused for this reason. `may_pass`: the same request,
  // unchanged, may be granted later. If so, an item of an array waits; any other job has failed.
  void on_refused(const ports::ProcessId& run, const std::string& why, bool may_pass);
  // The run got this lease and starts under it.
  void on_held(const ports::ProcessId& run, LeaseId lease);
  // The run's request was taken out of the queue.
  void on_cancelled(const ports::ProcessId& run, const std::string& why);
  // The time of a run under a reservation is over, and its command is being ended.
  void on_time_over(const ports::ProcessId& run, const std::string& why);
  // The lease of a run, or the reservation that it runs under, is being ended, together with the
  // processes of the run.
  enum class LeaseEnd { kTakenAway, kOverLimit, kTimeOver, kBooking };
  void on_lease_ending(LeaseId lease, LeaseEnd end, const std::string& why);
  // How much memory of this GPU each lease uses.
  void on_use(const GpuUuid& gpu, const std::map<LeaseId, Bytes>& used);
  // Call after restore() for each lease that the last daemon left of a job, and for each
  // reservation that a job runs under.
  void on_lease_restored(LeaseId lease, const ports::ProcessId& holder);

 private:
  jobs::Moment now() const;
  jobs::Policy policy_of(const jobs::JobSpec& spec) const;
  void on_handed_over(std::uint64_t id) override;
  void on_over(std::uint64_t id) override;
  Result<void> store(std::uint64_t id) override;
  JobEntry* entry_of(const ports::ProcessId& run);
  // Removes the name of this job from the specs of the jobs that start after it, and cancels the
  // jobs that wait for its success. `is_on`: this job still runs, so jobs that wait for its end
  // continue to wait. Returns the jobs that named it, which the caller must settle.
  Result<std::vector<std::uint64_t>> unname(const JobEntry& job, bool is_on);
  // If the jobs before a chained job have ended, starts or cancels the job.
  void check_chain(std::uint64_t id);
  JobEntry make_entry(std::uint64_t id, uid_t uid, jobs::JobSpec spec);
  // Takes over a run of this boot that may still exist.
  Result<void> take_up_run(JobEntry& job);
  jobs::Actions outcome(JobEntry& job);
  Result<void> take_up(const ports::StoredJob& stored, std::vector<std::uint64_t>& rebooted);
  void carry_out(JobEntry& job, const jobs::Actions& actions);
  void launch(JobEntry& job);
  void arm(JobEntry& job);
  void settle(std::uint64_t id);  // after any change

  Parts parts_;
  Supervisor supervisor_;
  JobEntries entries_;
  JobItems items_;
  bool restored_ = false;  // false: not all jobs are taken up yet
};

}  // namespace gpurota::daemon
