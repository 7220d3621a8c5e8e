// The daemon's side of keepers: one directory for each job below the state directory, in it what
// its keeper is told and reports, and its log. State thread only; starting one takes a fork.
//
//   STATE_DIR/jobs/ID/   0700: orders, report, lock, log.a, log.b   (jobs/record.h)
//
// Where systemd started the daemon, keepers are units of their own, which systemd is asked for: in
// a cgroup outside of the daemon's, with nothing of its sandbox, and stopped after it when the
// machine goes down. Elsewhere they are children of the daemon.
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
  // `program`: gpurota-keeper, absolute. `systemd_run`: the program that asks systemd for units;
  // empty: keepers are our children. `kind`: "job" or "filler", for the names of those units.
  Launcher(std::string directory, std::string program, std::string systemd_run = "",
           std::string kind = "job")
      : directory_(std::move(directory)),
        program_(std::move(program)),
        systemd_run_(std::move(systemd_run)),
        kind_(std::move(kind)) {}

  // Starts a keeper: the pid of a child of ours. The child is the keeper, or asks systemd for one:
  // when the child has ended, find_holder() tells which process is the keeper, and if none is,
  // read_report() why. The last run's report is gone then. `place` is called with a keeper that is
  // our child before it executes anything.
  Result<pid_t> start(std::uint64_t job, const jobs::KeeperOrders& orders,
                      const std::function<void(pid_t)>& place = nullptr);
  // Before a start is noted: there is nothing of the last run, and none has begun.
  void clear(std::uint64_t job);
  // Whether a keeper has come to its lock since clear(), or may have.
  bool began(std::uint64_t job) const;
  // A keeper that has not read its orders yet will not run. Then ask find_holder() once more.
  void withdraw(std::uint64_t job);
  // The keeper that lives, whoever started it; the kernel knows. An error is not that there is
  // none.
  Result<std::optional<pid_t>> find_holder(std::uint64_t job) const;
  bool is_held_by(std::uint64_t job, pid_t keeper) const;
  // Collects a keeper that has ended, if it is ours to collect.
  void collect(pid_t keeper);
  // kNotFound where a keeper ended without a word.
  Result<jobs::KeeperReport> read_report(std::uint64_t job) const;
  // The folder of its log, for read_log().
  std::string log_folder(std::uint64_t job) const { return place_of(job); }
  // Of what was printed, for people; empty if there is nothing.
  std::string last_line(std::uint64_t job) const;
  // Everything of a job that does not run.
  Result<void> forget(std::uint64_t job);
  // For a daemon that starts: everything of those that are not `known` and have no keeper. The last
  // one was killed between forgetting a job and removing what it had, the values of its variables
  // among it. Anything that is no directory of a job stays.
  void remove_leftovers(const std::function<bool(std::uint64_t job)>& known);

 private:
  std::string place_of(std::uint64_t job) const;
  std::vector<std::string> command_for(std::uint64_t job, const std::string& user) const;

  std::string directory_;
  std::string program_;
  std::string systemd_run_;
  std::string kind_;
};

// The end of the log in `folder`, at most so many bytes in whole lines, or what came since a place
// in it. Empty if nothing ever ran there. Any thread; may wait for the disk.
Result<jobs::LogPart> read_log(const std::string& folder, std::optional<jobs::LogCursor> from,
                               std::size_t most);

}  // namespace gpurota::keeper
