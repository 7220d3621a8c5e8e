// What jobs and fillers have in common: runs of a command as its owner. It launches them, hands
// them over, takes up those of the last daemon, hears of their end, and sees to it that the store
// hears of every change. State thread only.
//
// A run is a keeper (src/keeper), which executes `gpurota run` as the owner: it waits in the queue
// and holds its lease like anybody's. A keeper outlives the daemon; the next one finds it by the
// lock that it holds, and never starts a second. What is run when, and what follows from an end, is
// for a policy: Jobs, Fillers. Each has a supervisor.
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
  std::string user;  // its name when it was added
  jobs::JobSpec spec;
  UserBudgets::Held log{};  // of the disk, what its output may take
};

class Supervisor {
 public:
  // What the keeper and its `gpurota run`, which has a grace of its own, need beside the grace of
  // the command.
  static constexpr Duration kKeeperGrace = std::chrono::seconds(2);

  // `run`: the number of a run's files. A policy gives them: one for each run that can be on at a
  // time.
  class Policy {
   public:
    // systemd has started the keeper, which goes on where the process that asked for it has ended.
    // A signal that went to that one has not reached the keeper.
    virtual void on_handed_over(std::uint64_t run) = 0;
    // Its keeper has ended. What it left (report, log) is there until the next launch.
    virtual void on_over(std::uint64_t run) = 0;
    // Writes what has this id to the store. If it is removed and nothing of it runs, drops it
    // instead: Supervisor::remove().
    virtual Result<void> store(std::uint64_t id) = 0;

   protected:
    ~Policy() = default;
  };

  // The same for all policies.
  struct Parts {
    ports::EventLoop& loop;
    ports::Processes& processes;
    UserBudgets& budgets;
    ports::ProgramStore* store;  // null: nothing is run
    std::string keeper;          // gpurota-keeper; empty: not installed
    std::string systemd_run;     // empty: keepers are our children
    std::string gpurota;         // empty: not installed
    std::string runtime_dir;     // where `gpurota run` finds us
    uid_t own_uid = 0;           // ours: root's daemon runs commands of everybody
  };

  // `directory`: of their files. `policy` outlives it.
  Supervisor(Parts parts, ports::ProgramKind kind, const std::string& directory, Policy& policy);

  // Whether this user may have such programs. kUnavailable: nothing can be run here; or it is not
  // known what the user is called, which is held against the account at every start: the name
  // service has not answered yet, or there is none. kDenied: a daemon that is not root's runs those
  // of its own user only.
  Result<void> check_owner(uid_t uid) const;
  // kLimit, unless the output of all the user's may take `freed` bytes less and `added` more than
  // now. A user who has more already, as the site has come to allow less, keeps it.
  Result<void> check_logs(uid_t uid, std::uint64_t freed, std::uint64_t added) const;
  void count_logs(Supervised& entry, Bytes logs) const;

  // Starts it. If its keeper cannot be watched it is ended, and on_over() follows.
  // `log`: the bound of its log.
  Result<void> launch(std::uint64_t run, const Supervised& entry, const jobs::JobSpec& spec,
                      Bytes log = jobs::kLogBound);
  // After a start of the daemon: whether it is on, and then it is watched. A keeper that has not
  // come to its lock will not run. An error is not that there is none: it must not be started a
  // second time.
  Result<bool> take_up(std::uint64_t run);
  // Also while it cannot be told whether its keeper lives.
  bool is_on(std::uint64_t run) const { return runs_.contains(run); }
  // Whether this process is the keeper of a run that is on.
  bool is_kept_by(std::uint64_t run, pid_t process) const;
  // TERM for the run; kill(): KILL, after which the keeper lives to report it. Nothing where no
  // keeper is known.
  void end(std::uint64_t run);
  void kill(std::uint64_t run);

  // What runs leave, and are told.
  keeper::Launcher& files() { return launcher_; }
  const keeper::Launcher& files() const { return launcher_; }

  // After a change: the policy stores it. What cannot be stored (the disk is full) is in effect,
  // and store_again() tries once more; nobody is told but the log, and whoever asks check_stored().
  void settle(const Supervised& entry);
  void store_again();
  Result<void> check_stored(std::uint64_t id, const std::string& name) const;
  // Null: there are none.
  ports::ProgramStore* store() const { return parts_.store; }
  Result<std::uint64_t> next_id() { return parts_.store->next_program_id(kind_); }
  // For Policy::store(): out of the store, then the files of its runs. With an error nothing is
  // removed.
  Result<void> remove(const Supervised& entry, const std::vector<std::uint64_t>& runs);

 private:
  struct Run {
    std::optional<TrackedProcess> keeper{};     // or who asks systemd for one; empty: it may live
    bool starting = false;                      // it is who asks
    ports::EventLoop::SourcePtr check_again{};  // whether its keeper lives could not be told
  };

  Result<TrackedProcess> watch(std::uint64_t run, pid_t keeper);
  // Watches who holds its lock. False: nobody does.
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
  std::map<std::uint64_t, Run> runs_;  // that are on
  Unstored unstored_{what_};
};

}  // namespace gpurota::daemon
