// The rules for all jobs of a user together: how many jobs there may be, how long their commands
// may be, and in which order the jobs start. Pure.
#pragma once

#include "daemon/supervised/job_entry.h"
#include "jobs/chain.h"

#include <string>
#include <vector>

namespace gpurota::daemon {

// The bounds for one user.
inline constexpr std::size_t kMostJobs = 256;
inline constexpr std::size_t kMostJobBytes = std::size_t{1} << 20;  // specs of all jobs
inline constexpr std::size_t kMostUserItems = 20'000;               // items of all arrays

struct WantedJob {
  jobs::JobSpec spec;
  bool start = true;  // whether to start the job if it is new
};

// The user's job of this name; nullptr: there is none.
const JobEntry* find_job(const JobEntries& entries, uid_t uid, const std::string& name);

// Whether the user may have these jobs beside the others. A wanted job replaces a job of the same
// name.
Result<void> check_together(const JobEntries& entries, uid_t uid,
                            const std::vector<WantedJob>& wanted);

// How much disk space the logs of the wanted jobs may take (`added`), and how much the logs of the
// jobs that the wanted jobs replace (`freed`).
struct LogChange {
  std::uint64_t freed = 0, added = 0;  // bytes
};
LogChange log_change(const JobEntries& entries, uid_t uid, const std::vector<WantedJob>& wanted);

// Whether a job of this user has to wait for the jobs that it names. kWaits: "it starts when
// prepare has ended well and load has ended"; kNever: "prepare has not ended well: exit status 3".
struct Chain {
  jobs::Verdict verdict = jobs::Verdict::kMet;
  std::string text{};
};
Chain chain_of(const JobEntries& entries, uid_t uid, const jobs::JobSpec& spec);
// Whether a job with this spec would have to wait for others if it were started now. kInvalid: the
// job would wait for ever.
Result<bool> must_wait(const JobEntries& entries, uid_t uid, const jobs::JobSpec& spec);

// Whether a job in this phase stays in it until somebody starts the job.
bool is_settled(jobs::Phase phase);

// The user's jobs that name this job, for the order at boot or in a chain.
std::vector<std::uint64_t> named_by(const JobEntries& entries, const JobEntry& job);
// The jobs that wait for the end of this job.
std::vector<std::uint64_t> chained_after(const JobEntries& entries, const JobEntry& job);

// An error: the job runs (`is_on`), or other jobs start after it at boot or wait for it, so that
// only --force removes it. Jobs in `together` are no obstacle.
Result<void> check_removal(const JobEntries& entries, const JobEntry& job, bool is_on,
                           const std::vector<std::uint64_t>& together);

}  // namespace gpurota::daemon
