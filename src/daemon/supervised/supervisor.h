// The part that jobs and fillers have in common: runs of a command as its owner. The supervisor
// launches runs, hands them over to systemd, takes over the runs of the last daemon, watches for
// their ends, and has every change stored. State thread only.
//
// A run is a keeper (src/keeper), which executes `gpurota run` as the owner. `gpurota run` waits in
// the queue and holds its lease as if a user had started it. A keeper outlives the daemon; the next
// daemon finds the keeper by its lock, and never starts a second one. A policy (Jobs, Fillers)
// decides when something is run, and what follows from an end. Each policy has a supervisor.
#pragma once

#include "daemon/leases/tracked_process.h"
#include "daemon/leases/unstored.h"
#include "daemon/supervised/keeper_cgroups.h"
#include "daemon/users/user_budgets.h"
#include "jobs/record.h"
#include "keeper/launcher.h"
#include "ports/event_loop.h"
#include "ports/processes.h"
#include "ports/program_store.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace gpurota::daemon {

// A job or a filler.
struct Supervised {
  std::uint64_t id = 0;
  uid_t uid = 0;
  std::string user;  // the name of the user when the program was added
  jobs::JobSpec spec;
  UserBudgets::Held log{};  // the disk that its output may take
};

class Supervisor {
 public:
  // The time that the keeper and its `gpurota run`, which has a grace of its own, need beside the
  // grace of the command.
  static constexpr Duration kKeeperGrace = std::chrono::seconds(2);

  // `run`: the number of a run's files. The policy chooses the numbers: one for each run that can
  // exist at a time.
  class Policy {
   public:
    // systemd has started the keeper, and the process that asked systemd has ended. A signal that
    // was sent to that process has not reached the keeper.
    virtual void on_handed_over(std::uint64_t run) = 0;
    // The keeper of this run has ended. Its report and log are there until the next launch.
    virtual void on_over(std::uint64_t run) = 0;
    // Writes the program with this id to the store. If the program is removed and has no run, calls
    // Supervisor::remove() instead.
    virtual Result<void> store(std::uint64_t id) = 0;

   protected:
    ~Policy() = default;
  };

  // The parts that are the same for all policies.
  struct Parts {
    ports::EventLoop& loop;
    ports::Processes& processes;
    UserBudgets& budgets;
    ports::ProgramStore* store;  // null: no programs are run
    std::string keeper;          // gpurota-keeper; empty: not installed
    std::string systemd_run;     // empty: keepers are the daemon's children
    std::string gpurota;         // empty: not installed
    std::string runtime_dir;     // where `gpurota run` finds the daemon
    uid_t own_uid = 0;           // the daemon's; root's daemon runs commands of all users
  };

  // `directory`: for the files of runs. `policy` outlives the supervisor.
  Supervisor(Parts parts, ports::ProgramKind kind, const std::string& directory, Policy& policy);

  // Whether this user may have such programs. kUnavailable: no programs can be run here, or the
  // user's name, which each start compares with the account, does not exist or is not known yet.
  // kDenied: the daemon does not run as root, and so runs only the programs of its own user.
  Result<void> check_owner(uid_t uid) const;
  // kLimit: after a change that frees `freed` bytes and adds `added` bytes, the logs of all the
  // user's programs could take more than the site allows. A user who already has more, because the
  // site now allows less, may keep that amount.
  Result<void> check_logs(uid_t uid, std::uint64_t freed, std::uint64_t added) const;
  void count_logs(Supervised& entry, Bytes logs) const;

  // Starts a run. If the keeper cannot be watched, the run is ended, and on_over() follows. `log`:
  // the bound of its log.
  Result<void> launch(std::uint64_t run, const Supervised& entry, const jobs::JobSpec& spec,
                      Bytes log = jobs::kLogBound);
  // After a start of the daemon: returns whether the run still exists, and watches it if so.
  // Prevents a keeper that has not taken its lock yet from running. After an error the run may
  // exist: do not start it a second time.
  Result<bool> take_up(std::uint64_t run);
  // Also true while it is not known whether the run's keeper lives.
  bool is_on(std::uint64_t run) const { return runs_.contains(run); }
  // Whether this process is the keeper of this run.
  bool is_kept_by(std::uint64_t run, pid_t process) const;
  // end() has the keeper send TERM to the run; kill() has it send KILL, and the keeper reports the
  // end. Both do nothing if no keeper is known.
  void end(std::uint64_t run);
  void kill(std::uint64_t run);

  // The files of runs: orders, reports, logs.
  keeper::Launcher& files() { return launcher_; }
  const keeper::Launcher& files() const { return launcher_; }

  // Call after a change: makes the policy store it. A change that cannot be stored (the disk is
  // full) is still in effect, and store_again() tries again. The log reports the failure, and
  // check_stored() returns it.
  void settle(const Supervised& entry);
  void store_again();
  Result<void> check_stored(std::uint64_t id, const std::string& name) const;
  // Null: no programs are run here.
  ports::ProgramStore* store() const { return parts_.store; }
  Result<std::uint64_t> next_id() { return parts_.store->next_program_id(kind_); }
  // For Policy::store(): removes the program from the store, then the files of its runs. With an
  // error nothing is removed.
  Result<void> remove(const Supervised& entry, const std::vector<std::uint64_t>& runs);

 private:
  struct Run {
    std::optional<TrackedProcess> keeper{};     // or the process that asks systemd; empty: unknown
    bool starting = false;                      // `keeper` is the process that asks systemd
    ports::EventLoop::SourcePtr check_again{};  // set: it is not known whether the keeper lives
  };

  Result<TrackedProcess> watch(std::uint64_t run, pid_t keeper);
  // Watches the process that holds the run's lock. False: none does.
  Result<bool> adopt(std::uint64_t run);
  void on_keeper_death(std::uint64_t run);
  void check_again(std::uint64_t run);
  void signal(std::uint64_t run, int number);

  Parts parts_;
  ports::ProgramKind kind_;
  std::string what_ = ports::to_string(kind_);  // in messages and names of units
  Policy& policy_;
  keeper::Launcher launcher_;
  KeeperCgroups cgroups_{parts_.loop, parts_.processes};
  std::map<std::uint64_t, Run> runs_;  // the present runs
  Unstored unstored_{what_};
};

}  // namespace gpurota::daemon
