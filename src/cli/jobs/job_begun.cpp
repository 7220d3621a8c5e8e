#include "cli/jobs/job_begun.h"

#include "base/text.h"
#include "cli/jobs/job_view.h"
#include "cli/text/done_text.h"
#include "cli/text/output.h"
#include "client/reason_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace gpurota::cli {
namespace {

constexpr int kMostQueries = 100;
constexpr std::chrono::milliseconds kQueryPause{20};

bool is_known(const proto::Job& job) {
  if (job.items) return true;
  if (job.state == "waiting") return job.position || job.detail;
  return job.state != "running" || job.lease_id;
}

}  // namespace

Begun begun_of(const proto::Job& job, const proto::Lease* lease, WallTime now) {
  const std::string name = display_text(job.name, 64);
  const bool waits_for_others =
      job.state == "waiting" && (job.after_success || job.after_end) && !job.lease_id;
  if (job.state == "failed" || job.state == "backing-off") {
    const proto::JobRun* const run = job.runs.empty() ? nullptr : &job.runs.back();
    const std::string see = fmt::format(" (gpurota job show {})", name);
    if (run != nullptr && run->reason == "cannot-start") {
      const std::string why = run->detail ? ": " + display_text(*run->detail, 400) : "";
      return {name + ", which cannot start" + why + see, true};
    }
    // The program was started, so the job did not fail to start. How the program ended may not be
    // known yet.
    return {name + ", which has failed" + (run ? ": " + run_text(*run) : "") + see, false};
  }
  if (job.items && !waits_for_others && job.state != "cancelled") {
    const int items = count_of(*job.items);
    return {fmt::format("{}: {} {}, at most {} at once", name, items, items == 1 ? "item" : "items",
                        std::min(items, job.at_once.value_or(items))),
            false};
  }
  if (job.state == "running" && lease != nullptr) {
    return {
        fmt::format("{}: runs as {} on {}", name, to_string(lease->lease_id), gpus_text(*lease)),
        false};
  }
  if (job.state == "finished") return {name + ": it has finished", false};
  if (job.position) {
    const std::string why = job.detail ? ": " + client::reason_with_remedy(job, now) : "";
    return {fmt::format("{}: in the queue, position {}{}", name, *job.position, why), false};
  }
  if (waits_for_others) {
    return {fmt::format("{}: {}", name, job.detail.value_or("it waits")), false};
  }
  if (job.state == "cancelled") {
    const std::string why = job.detail ? ": " + display_text(*job.detail, 400) : "";
    return {name + ", which was cancelled" + why, true};
  }
  if (job.state == "waiting" && job.detail) {
    return {fmt::format("{}: waits: {}", name, client::reason_text(job, now)), false};
  }
  return {fmt::format("{}: it is starting (gpurota job show {})", name, name), false};
}

Result<Begun> await_begin(client::Connection& connection, proto::Job job) {
  for (int query = 0; query < kMostQueries && !is_known(job); ++query) {
    std::this_thread::sleep_for(kQueryPause);
    GPUROTA_ASSIGN_OR_RETURN(const auto reply,
                             connection.call(proto::ListJobs{job.name, std::nullopt}));
    if (!reply.jobs.empty()) job = reply.jobs.front();
  }
  if (!job.lease_id) return begun_of(job, nullptr, now());
  GPUROTA_ASSIGN_OR_RETURN(const auto status, connection.call(proto::Status{}));
  const auto lease =
      std::find_if(status.leases.begin(), status.leases.end(),
                   [&](const proto::Lease& each) { return each.lease_id == *job.lease_id; });
  return begun_of(job, lease == status.leases.end() ? nullptr : &*lease, now());
}

}  // namespace gpurota::cli
