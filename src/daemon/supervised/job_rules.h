// What the jobs of a user may be together: how many, how long their commands, who starts after
// whom. Pure.
#pragma once

#include "daemon/supervised/job_entry.h"

#include <string>
#include <vector>

namespace gpurota::daemon {

// Of one user.
inline constexpr std::size_t kMostJobs = 256;
inline constexpr std::size_t kMostJobBytes = std::size_t{1} << 20;  // of what they say

struct WantedJob {
  jobs::JobSpec spec;
  bool start = true;  // if it is not there yet
};

// The user's job of this name; nullptr: there is none.
const JobEntry* find_job(const JobEntries& entries, uid_t uid, const std::string& name);

// That the user may have these beside their others. One of the same name takes the place of the one
// that is there.
Result<void> check_together(const JobEntries& entries, uid_t uid,
                            const std::vector<WantedJob>& wanted);

// What the logs of these come to, and those whose place they take.
struct LogChange {
  std::uint64_t freed = 0, added = 0;  // bytes
};
LogChange log_change(const JobEntries& entries, uid_t uid, const std::vector<WantedJob>& wanted);

// The user's jobs that are to be started after it.
std::vector<std::uint64_t> started_after(const JobEntries& entries, const JobEntry& job);

// That a job which does not run may be removed: nobody starts after it.
Result<void> check_removal(const JobEntries& entries, const JobEntry& job);

}  // namespace gpurota::daemon
