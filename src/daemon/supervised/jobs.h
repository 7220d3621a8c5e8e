// The jobs: commands that the daemon looks after, a policy over the supervisor, which runs them.
// What happens when is decided by jobs/supervision.h; here it is carried out. What a user may have
// is said by job_rules.h. Every change is in the store before it is seen. State thread only.
//
// jobs_restore.cpp: after a start of the daemon. jobs_change.cpp: jobs are added and changed.
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
    // (kJobCancelled); empty: nobody hears of it.
    std::function<void(uid_t owner, NoticeKind kind, const std::string& job,
                       const std::string& why)>
        on_end = {};
  };

  explicit Jobs(Parts parts);

  // When the sockets are open. Jobs that ran or waited before a reboot are started in their order.
  Result<void> restore();

  // Added and started.
  Result<const JobEntry*> add(uid_t uid, jobs::JobSpec spec);
  // Its next start is made of this.
  Result<void> change(std::uint64_t id, jobs::JobSpec spec);
  enum class Change { kAdded, kChanged, kUnchanged };
  // Jobs of these names are changed, the others added: all or none.
  Result<std::vector<Change>> apply(uid_t uid, std::vector<WantedJob> wanted);
  enum class What { kStart, kStop, kRestart, kRemove };
  // Removing one that runs stops it first; others that are to be started after it name it no more
  // then. kInvalid: it cannot be started, as a job before it in its chain has failed. `by`: who
  // does it, where that is not the owner: "by root (administrator)".
  Result<void> control(std::uint64_t id, What what, const std::string& by = {});

  // What could not be stored (the disk was full) is, if it can be now.
  void store_again() { supervisor_.store_again(); }

  const JobEntries& entries() const { return entries_; }
  bool is_on(const JobEntry& job) const {
    return supervisor_.is_on(job.id) || !job.items.on().empty();
  }
  // Of arrays.
  JobItems& items() { return items_; }
  // The folder of its log, for keeper::read_log().
  std::string log_folder(std::uint64_t id) const { return supervisor_.files().log_folder(id); }

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
  enum class LeaseEnd { kTakenAway, kOverLimit, kTimeOver, kBooking };
  void on_lease_ending(LeaseId lease, LeaseEnd end, const std::string& why);
  // So much leases use of this GPU.
  void on_use(const GpuUuid& gpu, const std::map<LeaseId, Bytes>& used);
  // After restore(): a lease of one of them, or a reservation that it runs under, that the last
  // daemon left.
  void on_lease_restored(LeaseId lease, const ports::ProcessId& holder);

 private:
  jobs::Moment now() const;
  jobs::Policy policy_of(const jobs::JobSpec& spec) const;
  void on_handed_over(std::uint64_t id) override;
  void on_over(std::uint64_t id) override;
  Result<void> store(std::uint64_t id) override;
  JobEntry* entry_of(const ports::ProcessId& run);
  // Takes its name out of the jobs that are started after it, and cancels those that wait for its
  // success. `is_on`: those that wait for its end go on to. The jobs that named it, to be settled.
  Result<std::vector<std::uint64_t>> unname(const JobEntry& job, bool is_on);
  // A chained job goes on, or is cancelled, if it is time.
  void check_chain(std::uint64_t id);
  JobEntry make_entry(std::uint64_t id, uid_t uid, jobs::JobSpec spec);
  // One that may be on, in this boot.
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
  bool restored_ = false;  // before that not all jobs are there
};

}  // namespace gpurota::daemon
