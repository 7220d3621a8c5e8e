// Jobs are added and changed: part of jobs.cpp.
#include "base/log.h"
#include "daemon/jobs.h"
#include "jobs/start_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace gpurota::daemon {

Result<void> Jobs::check_jobs_of(uid_t uid) const {
  if (parts_.store == nullptr || parts_.keeper.empty() || parts_.gpurota.empty()) {
    return fail(Code::kUnavailable, "this daemon has no jobs: gpurota-keeper is not installed");
  }
  if (parts_.own_uid != 0 && uid != parts_.own_uid) {
    return fail(Code::kDenied,
                fmt::format("this daemon runs as uid {} and can run no job of another user",
                            parts_.own_uid));
  }
  return {};
}

Result<void> Jobs::check_together(uid_t uid, const std::vector<Wanted>& wanted) const {
  std::set<std::string> names;
  std::vector<jobs::Ordered> order;
  for (const Wanted& each : wanted) {
    if (auto checked = jobs::check_spec(each.spec); !checked) return checked;
    if (!names.insert(each.spec.name).second) {
      return fail(Code::kInvalid, fmt::format("job {} is there twice", each.spec.name));
    }
  }
  for (const auto& [id, job] : entries_) {
    if (job.uid != uid) continue;
    if (!names.contains(job.spec.name)) {
      order.push_back({job.spec.name, job.spec.after});
    } else if (job.removed) {
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
  GPUROTA_TRY(jobs::start_order(order));
  return {};
}

JobEntry Jobs::make_entry(std::uint64_t id, uid_t uid, jobs::JobSpec spec) const {
  const jobs::Policy policy = policy_of(spec);
  return {id, uid, parts_.processes.user_name(uid), std::move(spec), jobs::Supervision(policy)};
}

Result<const JobEntry*> Jobs::add(uid_t uid, jobs::JobSpec spec) {
  GPUROTA_TRY(check_jobs_of(uid));
  if (find(uid, spec.name) != nullptr) {
    return fail(Code::kInvalid, fmt::format("there is a job {0} already: 'gpurota job update {0}' "
                                            "changes it, 'gpurota job remove {0}' removes it",
                                            spec.name));
  }
  GPUROTA_TRY(check_together(uid, {{spec, true}}));
  GPUROTA_ASSIGN_OR_RETURN(const std::uint64_t id, parts_.store->next_job_id());
  JobEntry job = make_entry(id, uid, std::move(spec));
  GPUROTA_TRY(parts_.store->save_job(row_of(job)));
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
  GPUROTA_TRY(parts_.store->save_job(row));
  job.spec = std::move(spec);
  job.life.set_policy(policy_of(job.spec));
  log::info("job changed", {{"job", job.spec.name}, {"uid", job.uid}});
  return {};
}

Result<std::vector<Jobs::Change>> Jobs::apply(uid_t uid, std::vector<Wanted> wanted) {
  GPUROTA_TRY(check_jobs_of(uid));
  GPUROTA_TRY(check_together(uid, wanted));
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
      GPUROTA_ASSIGN_OR_RETURN(const std::uint64_t id, parts_.store->next_job_id());
      added.push_back(make_entry(id, uid, each.spec));
      job = &added.back();
    }
    rows.push_back(row_of(*job));
    rows.back().spec = encode(each.spec);
  }
  GPUROTA_TRY(parts_.store->save_jobs(rows));
  for (JobEntry& job : added) {
    const std::uint64_t id = job.id;
    entries_.emplace(id, std::move(job));
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::uint64_t id = find(uid, wanted[i].spec.name)->id;
    JobEntry& job = entries_.at(id);
    job.spec = wanted[i].spec;
    job.life.set_policy(policy_of(job.spec));
    if (changes[i] != Change::kAdded || !wanted[i].start) continue;
    carry_out(job, job.life.start(now()));
    settle(id);
  }
  log::info("jobs applied", {{"jobs", wanted.size()}, {"uid", uid}});
  return changes;
}

}  // namespace gpurota::daemon
