// A new daemon takes up the jobs of the last one: part of jobs.cpp.
#include "base/log.h"
#include "daemon/supervised/jobs.h"
#include "jobs/start_order.h"

#include <fmt/format.h>

#include <set>

namespace gpurota::daemon {
namespace {

// The order in which the jobs that ran before a reboot are started.
std::vector<std::uint64_t> boot_order(const JobEntries& entries,
                                      const std::vector<std::uint64_t>& rebooted) {
  std::vector<jobs::Ordered> order;
  for (const std::uint64_t id : rebooted) {
    const JobEntry& job = entries.at(id);
    const auto qualified = [&job](const std::string& name) {
      return fmt::format("{}/{}", job.uid, name);
    };
    jobs::Ordered ordered{qualified(job.spec.name), {}};
    for (const std::string& name : job.spec.after) ordered.after.push_back(qualified(name));
    order.push_back(std::move(ordered));
  }
  const auto sorted = jobs::start_order(order);
  if (!sorted) {
    log::warn("jobs wait for each other, starting them as they were added",
              {{"error", sorted.error().message}});
    return rebooted;
  }
  std::vector<std::uint64_t> ids;
  for (const std::size_t index : *sorted) ids.push_back(rebooted[index]);
  return ids;
}

}  // namespace

Result<void> Jobs::restore() {
  if (supervisor_.store() == nullptr) return {};
  GPUROTA_ASSIGN_OR_RETURN(const std::vector<ports::StoredJob> jobs,
                           supervisor_.store()->load_jobs());
  std::set<std::uint64_t> known;
  for (const ports::StoredJob& stored : jobs) known.insert(stored.id);
  supervisor_.files().remove_leftovers(
      [&known](std::uint64_t id) { return known.contains(array_of(id) == 0 ? id : array_of(id)); });
  std::vector<std::uint64_t> rebooted;
  for (const ports::StoredJob& stored : jobs) GPUROTA_TRY(take_up(stored, rebooted));
  for (const std::uint64_t id : boot_order(entries_, rebooted)) {
    JobEntry& job = entries_.at(id);
    carry_out(job, job.life.on_boot(now()));
    settle(id);
  }
  restored_ = true;
  items_.on_restored();
  std::vector<std::uint64_t> all;
  for (const auto& [id, job] : entries_) all.push_back(id);
  for (const std::uint64_t id : all) {
    if (entries_.contains(id)) check_chain(id);
  }
  return {};
}

// Returns an error if it is not known whether the job runs, as the job must not be started a second
// time.
Result<void> Jobs::take_up(const ports::StoredJob& stored, std::vector<std::uint64_t>& rebooted) {
  auto spec = jobs::decode_spec(stored.spec);
  auto state = jobs::decode_state(stored.state);
  if (!spec || !state) {
    log::error("a stored job cannot be read, ignoring it", {{"id", stored.id}});
    return {};
  }
  const jobs::Policy policy = policy_of(*spec);
  const auto [it, added] =
      entries_.emplace(stored.id, JobEntry{{stored.id, stored.uid, stored.user, std::move(*spec)},
                                           jobs::Supervision(policy, std::move(*state))});
  JobEntry& job = it->second;
  const std::uint64_t id = job.id;
  supervisor_.count_logs(job, logs_bound(job.spec));
  job.adopted = true;
  job.told = job.life.state().phase;
  job.items = jobs::Items(job.spec.array);
  for (const ports::StoredItem& item : stored.items) GPUROTA_TRY(items_.take_up(job, item));
  // No process of an earlier boot is left.
  if (stored.boot_id.empty() || stored.boot_id != parts_.processes.boot_id()) {
    rebooted.push_back(id);
    return {};
  }
  if (!job.spec.is_array()) return take_up_run(job);
  carry_out(job, job.life.on_adopted(now()));
  settle(id);
  return {};
}

// Finds the run by the lock of its keeper, even if the last daemon was killed before it stored the
// start.
Result<void> Jobs::take_up_run(JobEntry& job) {
  const std::uint64_t id = job.id;
  const jobs::Phase phase = job.life.state().phase;
  const bool ran = phase == jobs::Phase::kRunning || phase == jobs::Phase::kStopping;
  GPUROTA_ASSIGN_OR_RETURN(const bool on, supervisor_.take_up(id));
  if (on) log::info("job restored", {{"job", job.spec.name}, {"uid", job.uid}});
  if (ran && !on && !supervisor_.files().began(id)) {
    carry_out(job, job.life.on_never_began(now()));
    settle(id);
  } else if (ran && !on) {
    on_over(id);
  } else {
    carry_out(job, job.life.on_adopted(now()));
    settle(id);
  }
  return {};
}

void Jobs::on_lease_restored(LeaseId lease, const ports::ProcessId& holder) {
  JobEntry* const job = entry_of(holder);
  if (job == nullptr) return;
  job->lease = lease;
  job->runner = holder;
}

}  // namespace gpurota::daemon
