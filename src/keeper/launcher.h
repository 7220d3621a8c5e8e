// The daemon's side of keepers: a directory for each job below the state directory, with its
// keeper's orders, the keeper's report, and the log. State thread only; starting a keeper takes a
// fork.
//
//   STATE_DIR/jobs/ID/   0700: orders, report, lock, log.a, log.b   (jobs/record.h)
//
// Where systemd started the daemon, keepers are units of their own, requested from systemd: in a
// cgroup outside the daemon's, without its sandbox, and stopped after the daemon at shutdown.
// Elsewhere keepers are children of the daemon.
#pragma once

#include "base/result.h"
#include "jobs/log_reader.h"
#include "jobs/record.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace gpurota::keeper {

class Launcher {
 public:
  // `program`: gpurota-keeper, absolute. `systemd_run`: the program that requests units from
  // systemd; empty: keepers are our children. `kind`: "job" or "filler", for the names of the
  // units.
  Launcher(std::string directory, std::string program, std::string systemd_run = "",
           std::string kind = "job")
      : directory_(std::move(directory)),
        program_(std::move(program)),
        systemd_run_(std::move(systemd_run)),
        kind_(std::move(kind)) {}

  // Starts a keeper and returns the pid of a child of ours: the keeper, or a program that requests
  // it from systemd. When the child has ended, find_holder() returns the keeper, or read_report()
  // the reason why there is none. The last run's report is removed. `cgroup`: a new control
  // group in which the child begins. If the group cannot be made, or `cgroup` is empty, the child
  // begins in the group of this process.
  Result<pid_t> start(std::uint64_t job, const jobs::KeeperOrders& orders,
                      const std::string& cgroup = {});
  // Call before a start is recorded: removes the traces of the last run, so that began() is false
  // until the next run begins.
  void clear(std::uint64_t job);
  // Whether a keeper has taken its lock since clear(), or may have.
  bool began(std::uint64_t job) const;
  // Prevents a keeper that has not read its orders yet from running. Call find_holder() once more
  // after this.
  void withdraw(std::uint64_t job);
  // The living keeper, whoever started it, as the kernel reports it. An error does not mean that
  // there is no keeper.
  Result<std::optional<pid_t>> find_holder(std::uint64_t job) const;
  bool is_held_by(std::uint64_t job, pid_t keeper) const;
  // Reaps a keeper that has ended, if it is our child.
  void collect(pid_t keeper);
  // kNotFound if a keeper ended without a report.
  Result<jobs::KeeperReport> read_report(std::uint64_t job) const;
  // The folder of the job's log, for read_log().
  std::string log_folder(std::uint64_t job) const { return place_of(job); }
  // The last line of the output, for people; empty if there is none.
  std::string last_line(std::uint64_t job) const;
  // Removes everything of a job that is not running.
  Result<void> forget(std::uint64_t job);
  // Call when the daemon starts. Removes everything of jobs that are not `known` and have no
  // keeper: the last daemon may have been killed between removing a job from the store and removing
  // the job's files, which contain the values of the job's variables. Anything that is not the
  // directory of a job stays.
  void remove_leftovers(const std::function<bool(std::uint64_t job)>& known);

 private:
  std::string place_of(std::uint64_t job) const;
  std::vector<std::string> command_for(std::uint64_t job, const std::string& user) const;

  std::string directory_;
  std::string program_;
  std::string systemd_run_;
  std::string kind_;
};

// The end of the log in `folder`, at most this many bytes in whole lines, or what was added since a
// place in it. Empty if nothing ever ran there. Any thread; may wait for the disk.
Result<jobs::LogPart> read_log(const std::string& folder, std::optional<jobs::LogCursor> from,
                               std::size_t most);

}  // namespace gpurota::keeper
