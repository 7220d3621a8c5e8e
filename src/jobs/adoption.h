// Whether what a new daemon finds is still the run of a job that an earlier daemon started. A pid alone
// proves nothing: it may have been given away since. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <sys/types.h>

namespace gpurota::jobs {

// As it was written down when the run was started.
struct RecordedRun {
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;  // since boot: with the pid it names one process of one boot
  std::string boot_id;
  std::string cgroup;  // absolute path; empty: it has none of its own
};

// As it is now.
struct ObservedRun {
  std::string boot_id;
  std::optional<std::uint64_t> start_ticks;  // of the process with that pid; empty: there is none
  bool is_zombie = false;
  std::string cgroup;             // that this process is in
  bool cgroup_populated = false;  // whether anything is left in the recorded one
};

enum class Adoption {
  kRunning,   // the very process: watched again
  kRemnants,  // it has ended, but not all that it started: that is ended now
  kEnded,     // nothing of it is left, or what has its pid is somebody else
  kRebooted   // the machine went down in between
};

Adoption judge(const RecordedRun& recorded, const ObservedRun& observed);

}  // namespace gpurota::jobs
