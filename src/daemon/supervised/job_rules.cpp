#include "daemon/supervised/job_rules.h"

#include "base/text.h"
#include "jobs/log_ring.h"
#include "jobs/start_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace gpurota::daemon {
namespace {

// Whatever else there is. Its name joins `names`.
Result<void> check_alone(const jobs::JobSpec& spec, std::set<std::string>& names) {
  GPUROTA_TRY(jobs::check_spec(spec));
  const auto& options = spec.options;
  if (std::find(options.begin(), options.end(), "--filler") != options.end()) {
    return fail(Code::kInvalid,
                "a job cannot be a filler: leave out --filler, or use 'gpurota filler add'");
  }
  if (names.insert(spec.name).second) return {};
  return fail(Code::kInvalid, fmt::format("job {} appears twice", spec.name));
}

Result<void> check_removed(const JobEntries& entries, uid_t uid,
                           const std::set<std::string>& names) {
  for (const auto& [id, job] : entries) {
    if (job.uid != uid || !job.is_removed() || !names.contains(job.spec.name)) continue;
    return fail(Code::kInvalid, fmt::format("job {} is just being removed: try again when 'gpurota "
                                            "job list' does not show it",
                                            job.spec.name));
  }
  return {};
}

Result<void> check_after(const JobEntries& entries, uid_t uid,
                         const std::vector<WantedJob>& wanted) {
  std::set<std::string> names;
  for (const auto& [id, job] : entries) {
    if (job.uid == uid && !job.is_removed()) names.insert(job.spec.name);
  }
  for (const WantedJob& each : wanted) names.insert(each.spec.name);
  for (const WantedJob& each : wanted) {
    for (const std::string& name : each.spec.after) {
      if (names.contains(name)) continue;
      return fail(
          Code::kInvalid,
          fmt::format("job {} is to be started after {} (--after), but there is no such job: "
                      "add that first, or write both into one file for 'gpurota job apply'",
                      each.spec.name, display_text(name, 64)));
    }
  }
  return {};
}

}  // namespace

const JobEntry* find_job(const JobEntries& entries, uid_t uid, const std::string& name) {
  for (const auto& [id, job] : entries) {
    if (job.uid == uid && job.spec.name == name && !job.is_removed()) return &job;
  }
  return nullptr;
}

Result<void> check_together(const JobEntries& entries, uid_t uid,
                            const std::vector<WantedJob>& wanted) {
  std::set<std::string> names;
  for (const WantedJob& each : wanted) GPUROTA_TRY(check_alone(each.spec, names));
  GPUROTA_TRY(check_removed(entries, uid, names));
  std::size_t bytes = 0;
  std::vector<jobs::Ordered> order;
  const auto count = [&](const jobs::JobSpec& spec) {
    bytes += encode(spec).size();
    order.push_back({spec.name, spec.after});
  };
  for (const auto& [id, job] : entries) {
    if (job.uid == uid && !names.contains(job.spec.name)) count(job.spec);
  }
  for (const WantedJob& each : wanted) count(each.spec);
  if (bytes > kMostJobBytes) {
    return fail(Code::kLimit, "the commands and variables of your jobs together are too long");
  }
  if (order.size() > kMostJobs) {
    return fail(Code::kLimit,
                fmt::format("you can have {} jobs, this would be {}", kMostJobs, order.size()));
  }
  GPUROTA_TRY(check_after(entries, uid, wanted));
  GPUROTA_TRY(jobs::start_order(order));
  return {};
}

LogChange log_change(const JobEntries& entries, uid_t uid, const std::vector<WantedJob>& wanted) {
  LogChange change;
  for (const WantedJob& each : wanted) {
    const JobEntry* const job = find_job(entries, uid, each.spec.name);
    if (job != nullptr) change.freed += job->log.amount();
    if (each.spec.output == jobs::Output::kFile) change.added += jobs::kLogBound.count();
  }
  return change;
}

std::vector<std::uint64_t> started_after(const JobEntries& entries, const JobEntry& job) {
  std::vector<std::uint64_t> ids;
  for (const auto& [id, other] : entries) {
    const auto& after = other.spec.after;
    if (other.uid != job.uid || other.is_removed() || id == job.id) continue;
    if (std::find(after.begin(), after.end(), job.spec.name) != after.end()) ids.push_back(id);
  }
  return ids;
}

Result<void> check_removal(const JobEntries& entries, const JobEntry& job) {
  const std::string& name = job.spec.name;
  const auto others = started_after(entries, job);
  if (others.empty()) return {};
  std::string names;
  for (const std::uint64_t id : others) {
    names += (names.empty() ? "" : ", ") + entries.at(id).spec.name;
  }
  return fail(Code::kInvalid, fmt::format("other jobs start after {0} (--after): {1}. 'gpurota job "
                                          "remove --force {0}' removes it, also from their --after",
                                          name, names));
}

}  // namespace gpurota::daemon
