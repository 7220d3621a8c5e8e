// The jobs: commands that the daemon looks after. What happens when is decided by jobs/supervision.h;
// here it is carried out. State thread only.
//
// A run is a keeper (src/keeper), which executes `gpurota run` as the job's owner: it waits in the queue
// and holds its lease like anybody's. A keeper outlives the daemon; the next one finds it by the
// lock that it holds, and never starts a second. Every change is in the store before it is seen.
#pragma once

#include "daemon/tracked_process.h"
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
  std::optional<TrackedProcess> keeper;  // of the run that is on
  bool removed = false;                  // goes as soon as its run is over
  ports::EventLoop::SourcePtr timer;
};

class Jobs {
 public:
  // Of one user.
  static constexpr std::size_t kMostJobs = 256;

  struct Parts {
    ports::EventLoop& loop;
    ports::JobStore* store = nullptr;  // null: there are no jobs
    ports::Processes& processes;
    std::function<WallTime()> wall_clock;
    std::function<Duration()> grace;
    std::string directory;    // of the jobs' files
    std::string keeper;       // gpurota-keeper; empty: not installed
    std::string gpurota;      // empty: not installed
    std::string runtime_dir;  // where `gpurota run` finds us
    uid_t own_uid = 0;        // ours: root's daemon runs jobs of everybody
  };

  explicit Jobs(Parts parts);

  // When the sockets are open. Jobs that ran or waited before a reboot are started in their order.
  Result<void> restore();

  // Added and started.
  Result<const JobEntry*> add(uid_t uid, jobs::JobSpec spec);
  enum class What { kStart, kStop, kRestart, kRemove };
  // `force`: remove although it runs, which stops it first.
  Result<void> control(std::uint64_t id, What what, bool force);

  const std::map<std::uint64_t, JobEntry>& entries() const { return entries_; }
  const JobEntry* find(uid_t uid, const std::string& name) const;
  Result<std::string> read_log(std::uint64_t id, std::size_t most) const;

 private:
  jobs::Moment now() const;
  jobs::Policy policy_of(const jobs::JobSpec& spec) const;
  Result<void> check_new(uid_t uid, const jobs::JobSpec& spec) const;
  void take_up(const ports::StoredJob& stored, std::vector<std::uint64_t>& rebooted);
  void start_after_boot(const std::vector<std::uint64_t>& rebooted);
  void carry_out(JobEntry& job, const jobs::Actions& actions);
  void launch(JobEntry& job);
  void on_keeper_death(std::uint64_t id);
  void arm(JobEntry& job);
  Result<void> save(const JobEntry& job);
  void save_or_say(const JobEntry& job);
  void settle(std::uint64_t id);  // after any change

  Parts parts_;
  keeper::Launcher launcher_;
  std::map<std::uint64_t, JobEntry> entries_;
};

}  // namespace gpurota::daemon
