// The daemon's side of keepers: one directory for each job below the state directory, in it what its
// keeper is told and reports, and its log. State thread only; starting one takes a fork.
//
//   STATE_DIR/jobs/ID/   0700: orders, report, lock, log.a, log.b   (jobs/record.h)
#pragma once

#include "base/result.h"
#include "jobs/record.h"

#include <cstdint>
#include <optional>
#include <string>

#include <sys/types.h>

namespace gpurota::keeper {

class Launcher {
 public:
  // `program`: gpurota-keeper, absolute.
  Launcher(std::string directory, std::string program)
      : directory_(std::move(directory)), program_(std::move(program)) {}

  // Starts a keeper, a child of ours: its pid. The last run's report is gone then.
  Result<pid_t> start(std::uint64_t job, const jobs::KeeperOrders& orders);
  // The keeper that lives, whoever started it; the kernel knows.
  std::optional<pid_t> holder(std::uint64_t job) const;
  // Collects a keeper that has ended, if it is ours to collect.
  void collect(pid_t keeper);
  // kNotFound where a keeper ended without a word.
  Result<jobs::KeeperReport> read_report(std::uint64_t job) const;
  // The end of its log: at most so many bytes, whole lines. Empty if nothing ever ran.
  Result<std::string> read_log(std::uint64_t job, std::size_t most) const;
  // Everything of a job that does not run.
  Result<void> forget(std::uint64_t job);

 private:
  std::string place_of(std::uint64_t job) const;

  std::string directory_;
  std::string program_;
};

}  // namespace gpurota::keeper
