// Jobs are added and changed: part of jobs.cpp.
#include "base/log.h"
#include "daemon/supervised/jobs.h"
#include "jobs/start_order.h"

#include <fmt/format.h>

namespace gpurota::daemon {
namespace {

// The spec without the names of jobs that the same call adds: a job can always wait for a new job.
jobs::JobSpec without_new_names(const JobEntries& entries, uid_t uid, jobs::JobSpec spec) {
  const auto is_new = [&](const std::string& name) {
    return find_job(entries, uid, name) == nullptr;
  };
  std::erase_if(spec.after_success, is_new);
  std::erase_if(spec.after_end, is_new);
  return spec;
}

// Whether the user may have these jobs beside the others.
Result<void> check_wanted(const JobEntries& entries, const Supervisor& supervisor, uid_t uid,
                          const std::vector<WantedJob>& wanted) {
  GPUROTA_TRY(check_together(entries, uid, wanted));
  const LogChange logs = log_change(entries, uid, wanted);
  return supervisor.check_logs(uid, logs.freed, logs.added);
}

}  // namespace

Result<std::vector<std::uint64_t>> Jobs::unname(const JobEntry& job, bool is_on) {
  const auto ids = named_by(entries_, job);
  if (ids.empty()) return ids;
  const bool good = job.life.state().phase == jobs::Phase::kFinished;
  std::vector<jobs::JobSpec> specs;
  std::vector<jobs::Supervision> lives;
  std::vector<ports::StoredJob> rows;
  for (const std::uint64_t id : ids) {
    const JobEntry& other = entries_.at(id);
    jobs::JobSpec& spec = specs.emplace_back(other.spec);
    jobs::Supervision& life = lives.emplace_back(other.life);
    std::erase(spec.after, job.spec.name);
    if (!is_on) std::erase(spec.after_end, job.spec.name);
    if (std::erase(spec.after_success, job.spec.name) != 0 && !good) {
      life.on_chain_broken(job.spec.name + " was removed");
    }
    rows.push_back(row_of(other, parts_.processes.boot_id()));
    rows.back().spec = encode(spec);
    rows.back().state = encode(life.state());
  }
  GPUROTA_TRY(supervisor_.store()->save_jobs(rows));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    JobEntry& other = entries_.at(ids[i]);
    other.spec = std::move(specs[i]);
    other.life = std::move(lives[i]);
  }
  return ids;
}

JobEntry Jobs::make_entry(std::uint64_t id, uid_t uid, jobs::JobSpec spec) {
  const jobs::Policy policy = policy_of(spec);
  JobEntry job{{id, uid, parts_.processes.user_name(uid), std::move(spec)},
               jobs::Supervision(policy)};
  job.items = jobs::Items(job.spec.array);
  supervisor_.count_logs(job, logs_bound(job.spec));
  return job;
}

Result<const JobEntry*> Jobs::add(uid_t uid, jobs::JobSpec spec) {
  GPUROTA_TRY(supervisor_.check_owner(uid));
  if (find_job(entries_, uid, spec.name) != nullptr) {
    return fail(Code::kInvalid, fmt::format("there is a job {0} already: 'gpurota job update {0}' "
                                            "changes it, 'gpurota job remove {0}' removes it",
                                            spec.name));
  }
  GPUROTA_TRY(check_wanted(entries_, supervisor_, uid, {{spec, true}}));
  GPUROTA_ASSIGN_OR_RETURN(const bool chained, must_wait(entries_, uid, spec));
  GPUROTA_ASSIGN_OR_RETURN(const std::uint64_t id, supervisor_.next_id());
  JobEntry job = make_entry(id, uid, std::move(spec));
  GPUROTA_TRY(supervisor_.store()->save_jobs({row_of(job, parts_.processes.boot_id())}));
  const auto [it, added] = entries_.emplace(id, std::move(job));
  log::info("job added", {{"job", it->second.spec.name}, {"uid", uid}});
  carry_out(it->second, it->second.life.start(now(), chained));
  settle(id);
  return &it->second;
}

Result<void> Jobs::change(std::uint64_t id, jobs::JobSpec spec) {
  JobEntry& job = entries_.at(id);
  GPUROTA_TRY(check_wanted(entries_, supervisor_, job.uid, {{spec, true}}));
  ports::StoredJob row = row_of(job, parts_.processes.boot_id());
  row.spec = encode(spec);
  GPUROTA_TRY(supervisor_.store()->save_jobs({row}));
  job.spec = std::move(spec);
  supervisor_.count_logs(job, logs_bound(job.spec));
  job.life.set_policy(policy_of(job.spec));
  items_.take_spec(job);
  log::info("job changed", {{"job", job.spec.name}, {"uid", job.uid}});
  check_chain(id);
  return {};
}

Result<std::vector<Jobs::Change>> Jobs::apply(uid_t uid, std::vector<WantedJob> wanted) {
  GPUROTA_TRY(supervisor_.check_owner(uid));
  GPUROTA_TRY(check_wanted(entries_, supervisor_, uid, wanted));
  std::vector<jobs::Ordered> told;
  for (const WantedJob& each : wanted) told.push_back({each.spec.name, each.spec.after});
  GPUROTA_ASSIGN_OR_RETURN(const std::vector<std::size_t> order, jobs::start_order(told));
  for (const WantedJob& each : wanted) {
    if (!each.start || find_job(entries_, uid, each.spec.name) != nullptr) continue;
    GPUROTA_TRY(must_wait(entries_, uid, without_new_names(entries_, uid, each.spec)));
  }
  std::vector<Change> changes;
  std::vector<JobEntry> added;
  std::vector<ports::StoredJob> rows;
  for (const WantedJob& each : wanted) {
    const JobEntry* job = find_job(entries_, uid, each.spec.name);
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
  std::vector<std::uint64_t> changed;
  for (const std::size_t i : order) {
    const std::uint64_t id = find_job(entries_, uid, wanted[i].spec.name)->id;
    JobEntry& job = entries_.at(id);
    job.spec = wanted[i].spec;
    supervisor_.count_logs(job, logs_bound(job.spec));
    job.life.set_policy(policy_of(job.spec));
    items_.take_spec(job);
    if (changes[i] == Change::kChanged) changed.push_back(id);
    if (changes[i] != Change::kAdded || !wanted[i].start) continue;
    // A job that would wait for ever was refused above.
    carry_out(job, job.life.start(now(), must_wait(entries_, uid, job.spec).value_or(true)));
    settle(id);
  }
  for (const std::uint64_t id : changed) check_chain(id);
  log::info("jobs applied", {{"jobs", wanted.size()}, {"uid", uid}});
  return changes;
}

}  // namespace gpurota::daemon
