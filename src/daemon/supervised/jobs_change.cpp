// Jobs are added and changed: part of jobs.cpp.
#include "base/log.h"
#include "daemon/supervised/jobs.h"
#include "jobs/start_order.h"

#include <fmt/format.h>

namespace gpurota::daemon {

Result<void> Jobs::check_wanted(uid_t uid, const std::vector<WantedJob>& wanted) const {
  GPUROTA_TRY(check_together(entries_, uid, wanted));
  const LogChange logs = log_change(entries_, uid, wanted);
  return supervisor_.check_logs(uid, logs.freed, logs.added);
}

void Jobs::count_log(JobEntry& job) {
  supervisor_.count_logs(job, job.spec.output == jobs::Output::kFile ? 1 : 0);
}

Result<void> Jobs::unname(const JobEntry& job) {
  const auto ids = started_after(entries_, job);
  if (ids.empty()) return {};
  std::vector<jobs::JobSpec> specs;
  std::vector<ports::StoredJob> rows;
  for (const std::uint64_t id : ids) {
    const JobEntry& other = entries_.at(id);
    jobs::JobSpec& spec = specs.emplace_back(other.spec);
    std::erase(spec.after, job.spec.name);
    rows.push_back(row_of(other, parts_.processes.boot_id()));
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
  GPUROTA_TRY(supervisor_.check_owner(uid));
  if (find(uid, spec.name) != nullptr) {
    return fail(Code::kInvalid, fmt::format("there is a job {0} already: 'gpurota job update {0}' "
                                            "changes it, 'gpurota job remove {0}' removes it",
                                            spec.name));
  }
  GPUROTA_TRY(check_wanted(uid, {{spec, true}}));
  GPUROTA_ASSIGN_OR_RETURN(const std::uint64_t id, supervisor_.next_id());
  JobEntry job = make_entry(id, uid, std::move(spec));
  GPUROTA_TRY(supervisor_.store()->save_job(row_of(job, parts_.processes.boot_id())));
  const auto [it, added] = entries_.emplace(id, std::move(job));
  log::info("job added", {{"job", it->second.spec.name}, {"uid", uid}});
  carry_out(it->second, it->second.life.start(now()));
  settle(id);
  return &it->second;
}

Result<void> Jobs::change(std::uint64_t id, jobs::JobSpec spec) {
  JobEntry& job = entries_.at(id);
  GPUROTA_TRY(check_wanted(job.uid, {{spec, true}}));
  ports::StoredJob row = row_of(job, parts_.processes.boot_id());
  row.spec = encode(spec);
  GPUROTA_TRY(supervisor_.store()->save_job(row));
  job.spec = std::move(spec);
  count_log(job);
  job.life.set_policy(policy_of(job.spec));
  log::info("job changed", {{"job", job.spec.name}, {"uid", job.uid}});
  return {};
}

Result<std::vector<Jobs::Change>> Jobs::apply(uid_t uid, std::vector<WantedJob> wanted) {
  GPUROTA_TRY(supervisor_.check_owner(uid));
  GPUROTA_TRY(check_wanted(uid, wanted));
  std::vector<jobs::Ordered> told;
  for (const WantedJob& each : wanted) told.push_back({each.spec.name, each.spec.after});
  GPUROTA_ASSIGN_OR_RETURN(const std::vector<std::size_t> order, jobs::start_order(told));
  std::vector<Change> changes;
  std::vector<JobEntry> added;
  std::vector<ports::StoredJob> rows;
  for (const WantedJob& each : wanted) {
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
    rows.push_back(row_of(*job, parts_.processes.boot_id()));
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
