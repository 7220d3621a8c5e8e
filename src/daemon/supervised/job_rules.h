// What the jobs of a user may be together: how many, how long their commands, who starts after
// whom. Pure.
#pragma once

#include "daemon/supervised/job_entry.h"
#include "jobs/chain.h"

#include <string>
#include <vector>

namespace gpurota::daemon {

// Of one user.
inline constexpr std::size_t kMostJobs = 256;
inline constexpr std::size_t kMostJobBytes = std::size_t{1} << 20;  // of what they say
inline constexpr std::size_t kMostUserItems = 20'000;               // of their arrays

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

// Whether a job of this user has to wait for those that it names. kWaits: "it starts when
// prepare has ended well and load has ended"; kNever: "prepare has not ended well: exit status 3".
struct Chain {
  jobs::Verdict verdict = jobs::Verdict::kMet;
  std::string text{};
};
Chain chain_of(const JobEntries& entries, uid_t uid, const jobs::JobSpec& spec);
// Whether it would have to wait for others if it were started now; kInvalid: for ever.
Result<bool> must_wait(const JobEntries& entries, uid_t uid, const jobs::JobSpec& spec);

// Whether nothing more comes of it by itself.
bool is_settled(jobs::Phase phase);

// The user's jobs that name it, at boot or in a chain.
std::vector<std::uint64_t> named_by(const JobEntries& entries, const JobEntry& job);
// Those that wait for its end.
std::vector<std::uint64_t> chained_after(const JobEntries& entries, const JobEntry& job);

// An error: a job is removed with --force only, as it runs (`is_on`), or as jobs other than those
// in `together` start after it at boot, or wait for it.
Result<void> check_removal(const JobEntries& entries, const JobEntry& job, bool is_on,
                           const std::vector<std::uint64_t>& together);

}  // namespace gpurota::daemon
