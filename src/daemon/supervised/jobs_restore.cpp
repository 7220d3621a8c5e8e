// What a new daemon finds of the jobs: part of jobs.cpp.
#include "base/log.h"
#include "daemon/supervised/jobs.h"
#include "jobs/adoption.h"
#include "jobs/start_order.h"
#include "keeper/leftovers.h"

#include <fmt/format.h>

#include <set>

namespace gpurota::daemon {

Result<void> Jobs::restore() {
  if (parts_.store == nullptr) return {};
  GPUROTA_ASSIGN_OR_RETURN(const std::vector<ports::StoredJob> jobs, parts_.store->load_jobs());
  std::set<std::uint64_t> known;
  for (const ports::StoredJob& stored : jobs) known.insert(stored.id);
  keeper::remove_leftovers(parts_.directory, launcher_,
                           [&known](std::uint64_t id) { return known.contains(id); });
  std::vector<std::uint64_t> rebooted;
  for (const ports::StoredJob& stored : jobs) GPUROTA_TRY(take_up(stored, rebooted));
  start_after_boot(rebooted);
  return {};
}

// An error where it cannot be told whether it runs: it must not be started a second time.
Result<void> Jobs::take_up(const ports::StoredJob& stored, std::vector<std::uint64_t>& rebooted) {
  auto spec = jobs::decode_spec(stored.spec);
  auto state = jobs::decode_state(stored.state);
  if (!spec || !state) {
    log::error("a stored job cannot be read, ignoring it", {{"id", stored.id}});
    return {};
  }
  const jobs::Policy policy = policy_of(*spec);
  const bool ran = state->phase == jobs::Phase::kRunning || state->phase == jobs::Phase::kStopping;
  const auto [it, added] =
      entries_.emplace(stored.id, JobEntry{stored.id, stored.uid, stored.user, std::move(*spec),
                                           jobs::Supervision(policy, std::move(*state))});
  JobEntry& job = it->second;
  const std::uint64_t id = job.id;
  count_log(job);
  job.adopted = true;
  // The lock tells who keeps it, also where the last daemon was killed before it wrote that down. One that
  // has been started and has not come so far will not run.
  GPUROTA_ASSIGN_OR_RETURN(auto holder, launcher_.find_holder(id));
  if (!holder) {
    launcher_.withdraw(id);
    GPUROTA_ASSIGN_OR_RETURN(holder, launcher_.find_holder(id));
  }
  jobs::ObservedRun observed{parts_.processes.boot_id(), {}, false, "", false};
  jobs::RecordedRun recorded{0, 0, stored.boot_id, ""};
  if (holder) {
    GPUROTA_ASSIGN_OR_RETURN(const auto info, unless_gone(parts_.processes.read_info(*holder)));
    if (info) {
      observed.start_ticks = info->start_ticks;
      recorded.pid = *holder;
      recorded.start_ticks = stored.keeper && stored.keeper->pid == *holder
                                 ? stored.keeper->start_ticks
                                 : info->start_ticks;
    }
  }
  const jobs::Adoption verdict = jobs::judge(recorded, observed);
  if (verdict == jobs::Adoption::kRebooted) {
    rebooted.push_back(id);
    return {};
  }
  if (verdict == jobs::Adoption::kRunning) {
    GPUROTA_ASSIGN_OR_RETURN(auto keeper, find_keeper(id));
    if (keeper) job.keeper = std::move(*keeper);
    cgroups_.take_up(*holder);
    log::info("job restored", {{"job", job.spec.name}, {"uid", job.uid}});
  }
  if (ran && !job.keeper && !launcher_.began(id)) {
    carry_out(job, job.life.on_never_began(now()));
    settle(id);
  } else if (ran && !job.keeper) {
    on_keeper_death(id);
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

void Jobs::start_after_boot(const std::vector<std::uint64_t>& rebooted) {
  std::vector<jobs::Ordered> order;
  for (const std::uint64_t id : rebooted) {
    const JobEntry& job = entries_.at(id);
    const auto qualified = [&job](const std::string& name) {
      return fmt::format("{}/{}", job.uid, name);
    };
    jobs::Ordered ordered{qualified(job.spec.name), {}};
    for (const std::string& name : job.spec.after) ordered.after.push_back(qualified(name));
    order.push_back(std::move(ordered));
  }
  auto sorted = jobs::start_order(order);
  if (!sorted) {
    log::warn("jobs wait for each other, starting them as they were added",
              {{"error", sorted.error().message}});
    sorted.emplace();
    for (std::size_t i = 0; i < rebooted.size(); ++i) sorted->push_back(i);
  }
  for (const std::size_t index : *sorted) {
    JobEntry& job = entries_.at(rebooted[index]);
    carry_out(job, job.life.on_boot(now()));
    settle(rebooted[index]);
  }
}

}  // namespace gpurota::daemon
