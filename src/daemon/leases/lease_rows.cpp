#include "daemon/leases/lease_rows.h"

namespace gpurota::daemon {
namespace {

std::optional<ports::ProcessId> stored(const std::optional<TrackedProcess>& process) {
  if (!process) return std::nullopt;
  return process->id;
}

}  // namespace

ports::StoredLease row_of(const LeaseEntry& entry, const std::string& boot_id) {
  ports::StoredLease row;
  row.id = entry.lease.id;
  row.uid = entry.lease.uid;
  row.kind = to_string(entry.lease.kind);
  row.ends = entry.lease.ends;
  row.as_name = entry.lease.as_name;
  row.name = entry.lease.name;
  row.ticket = entry.ticket;
  row.booking = entry.booking;
  row.unused_since = entry.unused_since;
  for (const auto& [pid, command] : entry.commands) row.commands.push_back(command.stored());
  row.token = entry.token;
  row.since = entry.lease.since;
  row.note = entry.lease.note;
  row.command = entry.lease.command;
  for (const LeaseGpu& gpu : entry.lease.gpus) {
    row.gpus.push_back({gpu.uuid, gpu.limit, gpu.soft_limit, gpu.swap, gpu.oversize,
                        gpu.highest_limit, gpu.compute});
  }
  row.priority = entry.lease.priority;
  row.quantum = entry.lease.quantum;
  row.latency = entry.lease.latency;
  row.warning = entry.lease.warning;
  row.leaves = entry.lease.leaves;
  row.warned = entry.lease.warned;
  row.park = entry.lease.park;
  row.parked = entry.parked;
  row.holder = stored(entry.holder);
  row.main = stored(entry.main);
  row.cgroup = entry.members.cgroup();
  row.containers = entry.containers;
  row.subreaper = entry.subreaper;
  row.needs_driver_limit = entry.needs_driver_limit;
  row.pod_uid = entry.pod_uid;
  row.kubelet_container = entry.kubelet_container;
  row.boot_id = boot_id;
  row.ending = entry.cause.has_value();
  return row;
}

Result<void> save_lease(const LeaseEntry& entry, const std::string& boot_id, ports::Store& store,
                        LeaseTables& tables) {
  auto saved = store.save_lease(row_of(entry, boot_id));
  tables.store_error = saved ? std::nullopt : std::optional(saved.error());
  return saved;
}

Lease lease_of(const ports::StoredLease& stored) {
  Lease lease;
  lease.id = stored.id;
  lease.uid = stored.uid;
  lease.kind = parse_lease_kind(stored.kind).value_or(LeaseKind::kRun);
  lease.since = stored.since;
  lease.ends = stored.ends;
  lease.as_name = stored.as_name;
  lease.name = stored.name;
  lease.note = stored.note;
  lease.command = stored.command;
  for (const ports::StoredGpu& gpu : stored.gpus) {
    lease.gpus.push_back({gpu.uuid, gpu.limit, gpu.soft_limit, gpu.swap, gpu.oversize,
                          gpu.highest_limit, gpu.compute});
  }
  lease.priority = stored.priority;
  lease.quantum = stored.quantum;
  lease.latency = stored.latency;
  lease.warning = stored.warning;
  lease.leaves = stored.leaves;
  lease.warned = stored.warned;
  lease.park = stored.park;
  return lease;
}

}  // namespace gpurota::daemon
