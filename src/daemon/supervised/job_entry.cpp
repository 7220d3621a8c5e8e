#include "daemon/supervised/job_entry.h"

#include <fmt/format.h>

namespace gpurota::daemon {

ports::StoredJob row_of(const JobEntry& job, const std::string& boot_id) {
  return {{job.id, job.uid, job.user, encode(job.spec)}, encode(job.life.state()), boot_id};
}

std::string run_end_text(const jobs::JobState& state) {
  if (state.history.empty()) return {};
  const jobs::RunEnd& end = state.history.back();
  std::string text = jobs::to_string(end.reason);
  if (end.reason == jobs::EndReason::kExited) text = fmt::format("exit status {}", end.code);
  if (end.reason == jobs::EndReason::kSignalled)
    text = fmt::format("killed by signal {}", end.code);
  if (end.detail.empty()) return text;
  // For an array, the detail says how many items did not end well.
  if (end.reason == jobs::EndReason::kExited) return end.detail;
  return end.reason == jobs::EndReason::kCannotStart ? end.detail : text + ": " + end.detail;
}

std::string stopping_text(const JobEntry& job) {
  const jobs::JobState& state = job.life.state();
  return fmt::format("its job was {} {}", state.removed ? "removed" : "stopped",
                     state.end_detail.empty() ? "by " + job.user : state.end_detail);
}

}  // namespace gpurota::daemon
