// What the daemon says of itself: its health, and what `doctor` examines.
#include "daemon/daemon.h"

#include <chrono>
#include <set>

namespace gpurota::daemon {

proto::Health::Reply Daemon::health() const {
  proto::Health::Reply reply;
  reply.since = since_;
  if (driver_error_) reply.driver_error = driver_error_->message;
  if (const auto error = store_error()) reply.store_error = error->message;
  for (const auto& [type, count] : recorder_.counts()) reply.events.push_back({type, count});
  reply.waits = recorder_.waits();
  reply.recovered_bytes = recovered_.total();
  if (world_.longest_rounds) {
    using std::chrono::microseconds;
    const sys::LongestRounds longest = world_.longest_rounds();
    reply.loop_longest_us = std::chrono::ceil<microseconds>(longest.since_start).count();
    reply.loop_longest_minute_us = std::chrono::ceil<microseconds>(longest.last_minute).count();
  }
  return reply;
}

std::vector<Examination::Use> Daemon::budgets(uid_t viewer) {
  std::vector<Examination::Use> uses;
  const bool all = views_.sees_all(viewer, std::nullopt);
  for (const Budget budget : kBudgets) {
    const auto user = all ? budgets_.first(budget) : std::optional(viewer);
    const std::uint64_t used = user ? budgets_.used(*user, budget) : 0;
    if (used == 0) continue;
    const bool bytes =
        budget == Budget::kUnread || budget == Budget::kUnserved || budget == Budget::kJobLogs;
    uses.push_back({to_string(budget), world_.processes.user_name(*user), used,
                    budgets_.most(*user, budget), bytes});
  }
  return uses;
}

std::vector<proto::Check> Daemon::doctor(uid_t viewer) {
  Examination machine;
  machine.budgets = budgets(viewer);
  std::set<pid_t> counted;  // a process may be on several GPUs
  machine.driver = driver_;
  machine.driver_error = driver_error_;
  // Tried now, but nobody makes us write all the time.
  if (world_.loop.now() - store_checked_ >= std::chrono::seconds(1)) {
    store_checked_ = world_.loop.now();
    leases_.check_store();
  }
  machine.store_error = store_error();
  machine.automatic = automatic_.describe();
  machine.group = config_.group;
  machine.preload = places_.preload;
  machine.times_not_limited = keeper_.times_not_limited();
  if (world_.longest_rounds) machine.rounds = world_.longest_rounds();
  for (const GpuEntry& gpu : gpus_.entries()) {
    machine.gpus.push_back(
        {gpu.info, gpus_.name_of(gpu.info.uuid), gpu.sample, sampler_.settings(gpu.info.uuid)});
    for (const GpuProcess& process : gpu.sample.processes) {
      const auto use = tenants_.use_of(process.pid, gpu.info.uuid);
      if (use && counted.insert(process.pid).second) {
        machine.unhooked += use->unhooked;
        machine.unhooked_names.insert(use->unhooked_names.begin(), use->unhooked_names.end());
      }
    }
  }
  read_machine(machine, world_.processes);
  return examine(machine);
}

}  // namespace gpurota::daemon
