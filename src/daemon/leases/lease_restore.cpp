// What a daemon does with the leases that the last one left: the other half of lease_manager.cpp.
#include "base/log.h"
#include "daemon/leases/lease_manager.h"

#include <algorithm>

namespace gpurota::daemon {
namespace {

Lease lease_of(const ports::StoredLease& stored) {
  Lease lease;
  lease.id = stored.id;
  lease.uid = stored.uid;
  lease.kind = parse_lease_kind(stored.kind).value_or(LeaseKind::kRun);
  lease.since = stored.since;
  lease.ends = stored.ends;
  lease.as_name = stored.as_name;
  lease.note = stored.note;
  lease.command = stored.command;
  for (const ports::StoredGpu& gpu : stored.gpus) {
    lease.gpus.push_back(
        {gpu.uuid, gpu.limit, gpu.soft_limit, gpu.swap, gpu.oversize, gpu.highest_limit});
  }
  lease.priority = stored.priority;
  lease.quantum = stored.quantum;
  return lease;
}

}  // namespace

Result<void> LeaseManager::restore() {
  GPUROTA_ASSIGN_OR_RETURN(const std::vector<ports::StoredLease> leases,
                           parts_.store.load_leases());
  GPUROTA_ASSIGN_OR_RETURN(std::vector<ports::StoredGpuState> gpus, parts_.store.load_gpus());
  for (ports::StoredGpuState& gpu : gpus) {
    if (GpuEntry* known = parts_.gpus.find(gpu.uuid)) known->idle_since = gpu.idle_since;
    gpu_states_[gpu.uuid] = std::move(gpu);
  }
  settled_at_ = parts_.loop.now() +
                std::max<Duration>(parts_.config.reconnect_grace, std::chrono::seconds(1));
  const std::string boot_id = parts_.processes.boot_id();
  for (const ports::StoredLease& stored : leases) GPUROTA_TRY(restore_one(stored, boot_id));
  return {};
}

// An error where it cannot be told who of it lives: nobody is taken for dead by that.
Result<void> LeaseManager::restore_one(const ports::StoredLease& stored,
                                       const std::string& boot_id) {
  LeaseEntry entry(parts_.processes);
  entry.lease = lease_of(stored);
  entry.ticket = stored.ticket;
  entry.token = stored.token;
  // Pids and cgroups of another boot mean nothing.
  const bool same_boot = stored.boot_id == boot_id;
  using Found = Result<std::optional<TrackedProcess>>;
  const auto find = [&](const std::optional<ports::ProcessId>& process,
                        std::function<void()> on_death) -> Found {
    if (!process || !same_boot) return std::nullopt;
    return unless_gone(track(parts_.processes, *process, std::move(on_death)));
  };
  const LeaseId id = stored.id;
  // Only a lease that its processes hold has one process for both.
  entry.automatic = stored.main && stored.main == stored.holder;
  GPUROTA_ASSIGN_OR_RETURN(
      entry.holder, find(stored.holder, entry.automatic ? [this, id] { on_process_death(id); }
                                                        : on_holder_death(id)));
  GPUROTA_ASSIGN_OR_RETURN(
      entry.main, find(stored.main, entry.automatic ? std::function<void()>() : on_main_death(id)));
  entry.subreaper = stored.subreaper;
  const auto id_of = [](const std::optional<TrackedProcess>& process) {
    return process ? std::optional(process->id) : std::nullopt;
  };
  const auto reaper = entry.subreaper && stored.cgroup.empty() ? id_of(entry.holder) : std::nullopt;
  if (entry.automatic) {
    if (entry.main) entry.members.add(entry.main->id);
  } else if (same_boot && (entry.main || !stored.cgroup.empty())) {
    entry.members.set_root(id_of(entry.main), stored.cgroup, reaper);
  }
  const bool holder = entry.holder.has_value();
  const bool main = entry.main.has_value();
  if (entry.automatic && !main && same_boot) {
    // Children of the one that asked may live, and come back within the grace.
    auto timer =
        parts_.loop.add_timer(parts_.loop.now() + parts_.config.reconnect_grace,
                              ports::Urgency::kSafety, [this, id] { on_process_death(id); });
    if (timer) entry.timer = std::move(*timer);
  }
  const bool waits = entry.timer != nullptr || entry.lease.kind == LeaseKind::kReservation;
  if (same_boot) GPUROTA_TRY(restore_commands(entry, stored));
  parts_.grants.open(entry.lease);
  const auto [added, fresh] = entries_.emplace(id, std::move(entry));
  arm_expiry(added->second);
  log::info("lease restored", {{"lease", to_string(id)}, {"running", main}});
  if (stored.ending) {
    end(id, EndCause::kReleased, "it was ending when the daemon stopped");
  } else if (!main && !waits && (stored.main || !holder)) {
    end(id, EndCause::kFinished, "its command ended while the daemon was away");
  } else if (main && !holder) {
    end(id, EndCause::kLost, "the process that held it ended while the daemon was away");
  }
  return {};
}

}  // namespace gpurota::daemon
