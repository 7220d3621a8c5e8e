#include "daemon/supervised/job_entry.h"

#include <fmt/format.h>

namespace gpurota::daemon {

ports::StoredJob row_of(const JobEntry& job, const std::string& boot_id) {
  return {{job.id, job.uid, job.user, encode(job.spec)}, encode(job.life.state()), boot_id};
}

std::string stopping_text(const JobEntry& job) {
  const jobs::JobState& state = job.life.state();
  return fmt::format("its job was {} {}", state.removed ? "removed" : "stopped",
                     state.end_detail.empty() ? "by " + job.user : state.end_detail);
}

}  // namespace gpurota::daemon
