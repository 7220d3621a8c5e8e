// Jobs are added and changed: part of jobs.cpp.
#include "base/log.h"
#include "base/text.h"
#include "daemon/supervised/jobs.h"
#include "jobs/log_ring.h"
#include "jobs/start_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace gpurota::daemon {

Result<void> Jobs::check_jobs_of(uid_t uid) const { return supervisor_.check_owner(uid); }

Result<void> Jobs::check_together(uid_t uid, const std::vector<Wanted>& wanted) const {
  std::set<std::string> names;
  std::vector<jobs::Ordered> order;
  for (const Wanted& each : wanted) {
    if (auto checked = jobs::check_spec(each.spec); !checked) return checked;
    const auto& options = each.spec.options;
    if (std::find(options.begin(), options.end(), "--filler") != options.end()) {
      return fail(Code::kInvalid,
                  "a job cannot be a filler: leave out --filler, or use 'gpurota filler add'");
    }
    if (!names.insert(each.spec.name).second) {
      return fail(Code::kInvalid, fmt::format("job {} appears twice", each.spec.name));
    }
  }
  for (const auto& [id, job] : entries_) {
    if (job.uid != uid) continue;
    if (!names.contains(job.spec.name)) {
      order.push_back({job.spec.name, job.spec.after});
    } else if (job.is_removed()) {
      return fail(Code::kInvalid,
                  fmt::format("job {} is just being removed: try again when 'gpurota "
                              "job list' does not show it",
                              job.spec.name));
    }
  }
  std::size_t bytes = 0;
  for (const auto& [id, job] : entries_) {
    if (job.uid == uid && !names.contains(job.spec.name)) bytes += encode(job.spec).size();
  }
  for (const Wanted& each : wanted) {
    bytes += encode(each.spec).size();
    order.push_back({each.spec.name, each.spec.after});
  }
  if (bytes > kMostBytes) {
    return fail(Code::kLimit, "the commands and variables of your jobs together are too long");
  }
  if (order.size() > kMostJobs) {
    return fail(Code::kLimit,
                fmt::format("you can have {} jobs, this would be {}", kMostJobs, order.size()));
  }
  GPUROTA_TRY(check_logs(uid, wanted));
  GPUROTA_TRY(check_after(uid, wanted));
  GPUROTA_TRY(jobs::start_order(order));
  return {};
}

Result<void> Jobs::check_logs(uid_t uid, const std::vector<Wanted>& wanted) const {
  std::uint64_t freed = 0, added = 0;
  for (const Wanted& each : wanted) {
    const JobEntry* const job = find(uid, each.spec.name);
    if (job != nullptr) freed += job->log.amount();
    if (each.spec.output == jobs::Output::kFile) added += jobs::kLogBound.count();
  }
  return supervisor_.check_logs(uid, freed, added);
}

void Jobs::count_log(JobEntry& job) {
  supervisor_.count_logs(job, job.spec.output == jobs::Output::kFile ? 1 : 0);
}

Result<void> Jobs::check_after(uid_t uid, const std::vector<Wanted>& wanted) const {
  std::set<std::string> names;
  for (const auto& [id, job] : entries_) {
    if (job.uid == uid && !job.is_removed()) names.insert(job.spec.name);
  }
  for (const Wanted& each : wanted) names.insert(each.spec.name);
  for (const Wanted& each : wanted) {
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

std::vector<std::uint64_t> Jobs::started_after(const JobEntry& job) const {
  std::vector<std::uint64_t> ids;
  for (const auto& [id, other] : entries_) {
    const auto& after = other.spec.after;
    if (other.uid != job.uid || other.is_removed() || id == job.id) continue;
    if (std::find(after.begin(), after.end(), job.spec.name) != after.end()) ids.push_back(id);
  }
  return ids;
}

Result<void> Jobs::check_removal(const JobEntry& job) const {
  const std::string& name = job.spec.name;
  if (is_on(job)) {
    return fail(Code::kInvalid, fmt::format("{0} runs: 'gpurota job remove --force {0}' stops it "
                                            "and removes it",
                                            name));
  }
  const auto others = started_after(job);
  if (others.empty()) return {};
  std::string names;
  for (const std::uint64_t id : others) {
    names += (names.empty() ? "" : ", ") + entries_.at(id).spec.name;
  }
  return fail(Code::kInvalid, fmt::format("other jobs start after {0} (--after): {1}. 'gpurota job "
                                          "remove --force {0}' removes it, also from their --after",
                                          name, names));
}

Result<void> Jobs::unname(const JobEntry& job) {
  const auto ids = started_after(job);
  if (ids.empty()) return {};
  std::vector<jobs::JobSpec> specs;
  std::vector<ports::StoredJob> rows;
  for (const std::uint64_t id : ids) {
    const JobEntry& other = entries_.at(id);
    jobs::JobSpec& spec = specs.emplace_back(other.spec);
    std::erase(spec.after, job.spec.name);
    rows.push_back(row_of(other));
    rows.back().spec = encode(spec);
  }
  GPUROTA_TRY(supervisor_.store()->save_jobs(rows));
  for (std::size_t i = 0; i < ids.size(); ++i) entries_.at(ids[i]).spec = std::move(specs[i]);
  return {};
}

JobEntry Jobs::make_entry(std::uint64_t id, uid_t uid, jobs::JobSpec spec) {
  const jobs::Policy policy = policy_of(spec);
  JobEntry job{{id, uid, parts_.processes.user_name(uid), std::move(spec)},
               jobs::Supervision(policy)};
  count_log(job);
  return job;
}

Result<const JobEntry*> Jobs::add(uid_t uid, jobs::JobSpec spec) {
  GPUROTA_TRY(check_jobs_of(uid));
  if (find(uid, spec.name) != nullptr) {
    return fail(Code::kInvalid, fmt::format("there is a job {0} already: 'gpurota job update {0}' "
                                            "changes it, 'gpurota job remove {0}' removes it",
                                            spec.name));
  }
  GPUROTA_TRY(check_together(uid, {{spec, true}}));
  GPUROTA_ASSIGN_OR_RETURN(const std::uint64_t id, supervisor_.next_id());
  JobEntry job = make_entry(id, uid, std::move(spec));
  GPUROTA_TRY(supervisor_.store()->save_job(row_of(job)));
  const auto [it, added] = entries_.emplace(id, std::move(job));
  log::info("job added", {{"job", it->second.spec.name}, {"uid", uid}});
  carry_out(it->second, it->second.life.start(now()));
  settle(id);
  return &it->second;
}

Result<void> Jobs::change(std::uint64_t id, jobs::JobSpec spec) {
  JobEntry& job = entries_.at(id);
  GPUROTA_TRY(check_together(job.uid, {{spec, true}}));
  ports::StoredJob row = row_of(job);
  row.spec = encode(spec);
  GPUROTA_TRY(supervisor_.store()->save_job(row));
  job.spec = std::move(spec);
  count_log(job);
  job.life.set_policy(policy_of(job.spec));
  log::info("job changed", {{"job", job.spec.name}, {"uid", job.uid}});
  return {};
}

Result<std::vector<Jobs::Change>> Jobs::apply(uid_t uid, std::vector<Wanted> wanted) {
  GPUROTA_TRY(check_jobs_of(uid));
  GPUROTA_TRY(check_together(uid, wanted));
  std::vector<jobs::Ordered> told;
  for (const Wanted& each : wanted) told.push_back({each.spec.name, each.spec.after});
  GPUROTA_ASSIGN_OR_RETURN(const std::vector<std::size_t> order, jobs::start_order(told));
  std::vector<Change> changes;
  std::vector<JobEntry> added;
  std::vector<ports::StoredJob> rows;
  for (const Wanted& each : wanted) {
    const JobEntry* job = find(uid, each.spec.name);
    changes.push_back(job == nullptr           ? Change::kAdded
                      : job->spec == each.spec ? Change::kUnchanged
                                               : Change::kChanged);
    if (changes.back() == Change::kUnchanged) continue;
    if (job == nullptr) {
      GPUROTA_ASSIGN_OR_RETURN(const std::uint64_t id, supervisor_.next_id());
      added.push_back(make_entry(id, uid, each.spec));
      job = &added.back();
    }
    rows.push_back(row_of(*job));
    rows.back().spec = encode(each.spec);
  }
  GPUROTA_TRY(supervisor_.store()->save_jobs(rows));
  for (JobEntry& job : added) {
    const std::uint64_t id = job.id;
    entries_.emplace(id, std::move(job));
  }
  for (const std::size_t i : order) {
    const std::uint64_t id = find(uid, wanted[i].spec.name)->id;
    JobEntry& job = entries_.at(id);
    job.spec = wanted[i].spec;
    count_log(job);
    job.life.set_policy(policy_of(job.spec));
    if (changes[i] != Change::kAdded || !wanted[i].start) continue;
    carry_out(job, job.life.start(now()));
    settle(id);
  }
  log::info("jobs applied", {{"jobs", wanted.size()}, {"uid", uid}});
  return changes;
}

}  // namespace gpurota::daemon
