#include "store/lease_tables.h"

#include "store/columns.h"

#include <chrono>
#include <cstddef>

namespace gpurota::store {
namespace {

using ports::StoredGpu;
using ports::StoredLease;

constexpr const char* kSelectLeases =
    "SELECT id, uid, kind, token, since_ms, note, holder_pid, holder_start, main_pid, main_start, "
    "cgroup,"
    " boot_id, ending, subreaper, ends_ms, as_name, ticket, priority,"
    " quantum_ms, name, containers, booking, unused_since_ms, warn_s, warn_signal, leaves_ms, "
    "warned, needs_driver_limit, pod_uid, latency, kubelet_container, park, parked"
    " FROM lease ORDER BY id";
constexpr const char* kInsertLease =
    "INSERT INTO lease (id, uid, kind, token, since_ms, note, holder_pid, holder_start, main_pid,"
    " main_start, cgroup, boot_id, ending, subreaper, ends_ms, as_name, ticket, priority,"
    " quantum_ms, name, containers, booking, unused_since_ms, warn_s, warn_signal, leaves_ms, "
    "warned, needs_driver_limit, pod_uid, latency, kubelet_container, park, parked)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
    "?, ?, ?, ?, ?)";

StoredLease lease_at(const Statement& row) {
  StoredLease lease;
  lease.id.value = from_integer(row.integer(0));
  lease.uid = static_cast<uid_t>(row.integer(1));
  lease.kind = row.bytes(2);
  lease.token = row.bytes(3);
  lease.since = time_at(row, 4);
  lease.note = row.bytes(5);
  lease.holder = optional_process_at(row, 6);
  lease.main = optional_process_at(row, 8);
  lease.cgroup = row.bytes(10);
  lease.boot_id = row.bytes(11);
  lease.ending = row.integer(12) != 0;
  lease.subreaper = row.integer(13) != 0;
  lease.ends = optional_time_at(row, 14);
  lease.as_name = row.bytes(15);
  lease.ticket = row.bytes(16);
  lease.priority = static_cast<int>(row.integer(17));
  if (!row.is_null(18)) lease.quantum = std::chrono::milliseconds(row.integer(18));
  lease.name = row.bytes(19);
  lease.containers = split_containers(row.bytes(20));
  if (!row.is_null(21)) lease.booking = RequestId{from_integer(row.integer(21))};
  lease.unused_since = optional_time_at(row, 22);
  lease.warning = {std::chrono::seconds(row.integer(23)), static_cast<int>(row.integer(24))};
  lease.leaves = optional_time_at(row, 25);
  lease.warned = row.integer(26) != 0;
  lease.needs_driver_limit = row.integer(27) != 0;
  lease.pod_uid = row.bytes(28);
  lease.latency = latency_at(row, 29);
  lease.kubelet_container = row.bytes(30);
  lease.park = parse_park_state(row.bytes(31)).value_or(ParkState::kNone);
  lease.parked = split_processes(row.bytes(32));
  return lease;
}

}  // namespace

Result<std::vector<StoredLease>> LeaseTables::load() {
  std::vector<StoredLease> leases;
  GPUROTA_ASSIGN_OR_RETURN(auto rows, database_.prepare(kSelectLeases));
  for (;;) {
    GPUROTA_ASSIGN_OR_RETURN(const bool row, rows.step());
    if (!row) break;
    leases.push_back(lease_at(rows));
    GPUROTA_TRY(load_parts(leases.back()));
  }
  return leases;
}

Result<void> LeaseTables::load_parts(StoredLease& lease) {
  GPUROTA_ASSIGN_OR_RETURN(
      auto gpus,
      database_.prepare("SELECT uuid, limit_bytes, soft_limit_bytes, swap, oversize_bytes,"
                        " highest_limit_bytes, compute, compute_max"
                        " FROM lease_gpu WHERE lease = ? ORDER BY position"));
  gpus.bind(to_integer(lease.id.value));
  for (;;) {
    GPUROTA_ASSIGN_OR_RETURN(const bool row, gpus.step());
    if (!row) break;
    lease.gpus.push_back(
        StoredGpu{GpuUuid{gpus.bytes(0)},
                  bytes_at(gpus, 1),
                  bytes_at(gpus, 2),
                  gpus.integer(3) != 0,
                  Bytes(from_integer(gpus.integer(4))),
                  Bytes(from_integer(gpus.integer(5))),
                  {static_cast<int>(gpus.integer(6)), static_cast<int>(gpus.integer(7))}});
  }
  GPUROTA_ASSIGN_OR_RETURN(
      auto arguments,
      database_.prepare("SELECT value FROM lease_argument WHERE lease = ? ORDER BY position"));
  arguments.bind(to_integer(lease.id.value));
  for (;;) {
    GPUROTA_ASSIGN_OR_RETURN(const bool row, arguments.step());
    if (!row) return load_commands(lease);
    lease.command.push_back(arguments.bytes(0));
  }
}

Result<void> LeaseTables::write(const StoredLease& lease) {
  GPUROTA_TRY(remove(lease.id));
  GPUROTA_ASSIGN_OR_RETURN(auto insert, database_.prepare(kInsertLease));
  insert.bind(to_integer(lease.id.value))
      .bind(lease.uid)
      .bind_text(lease.kind)
      .bind_text(lease.token);
  insert.bind(to_integer(lease.since)).bind_blob(lease.note);
  bind_process(insert, lease.holder);
  bind_process(insert, lease.main);
  insert.bind_blob(lease.cgroup).bind_text(lease.boot_id).bind(lease.ending ? 1 : 0);
  insert.bind(lease.subreaper ? 1 : 0);
  insert.bind(to_integer(lease.ends));
  insert.bind_blob(lease.as_name).bind_text(lease.ticket).bind(lease.priority);
  insert.bind(lease.quantum ? std::optional<std::int64_t>(lease.quantum->count()) : std::nullopt);
  insert.bind_text(lease.name).bind_blob(join_containers(lease.containers));
  insert.bind(lease.booking ? std::optional(to_integer(lease.booking->value)) : std::nullopt);
  insert.bind(to_integer(lease.unused_since));
  insert.bind(lease.warning.before.count()).bind(lease.warning.signal);
  insert.bind(to_integer(lease.leaves)).bind(lease.warned ? 1 : 0);
  insert.bind(lease.needs_driver_limit ? 1 : 0).bind_text(lease.pod_uid);
  insert.bind_text(to_string(lease.latency)).bind_blob(lease.kubelet_container);
  insert.bind_text(to_string(lease.park));
  GPUROTA_TRY(insert.bind_text(join_processes(lease.parked)).run());
  GPUROTA_TRY(write_commands(lease));
  return write_parts(lease);
}

Result<void> LeaseTables::write_parts(const StoredLease& lease) {
  const std::int64_t id = to_integer(lease.id.value);
  GPUROTA_ASSIGN_OR_RETURN(
      auto gpu, database_.prepare("INSERT INTO lease_gpu VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  for (std::size_t i = 0; i < lease.gpus.size(); ++i) {
    const StoredGpu& each = lease.gpus[i];
    gpu.bind(id).bind(to_integer(i)).bind_text(each.uuid.value);
    gpu.bind(to_integer(each.limit)).bind(to_integer(each.soft_limit));
    gpu.bind(each.swap ? 1 : 0);
    gpu.bind(to_integer(each.oversize.count()));
    gpu.bind(to_integer(each.highest_limit.count()));
    GPUROTA_TRY(gpu.bind(each.compute.least).bind(each.compute.most).run());
  }
  GPUROTA_ASSIGN_OR_RETURN(auto argument,
                           database_.prepare("INSERT INTO lease_argument VALUES (?, ?, ?)"));
  for (std::size_t i = 0; i < lease.command.size(); ++i) {
    GPUROTA_TRY(argument.bind(id).bind(to_integer(i)).bind_blob(lease.command[i]).run());
  }
  return {};
}

Result<void> LeaseTables::load_commands(StoredLease& lease) {
  GPUROTA_ASSIGN_OR_RETURN(
      auto rows,
      database_.prepare("SELECT holder_pid, holder_start, main_pid, main_start, cgroup,"
                        " ends_ms FROM lease_command WHERE lease = ? ORDER BY position"));
  rows.bind(to_integer(lease.id.value));
  for (;;) {
    GPUROTA_ASSIGN_OR_RETURN(const bool row, rows.step());
    if (!row) return {};
    lease.commands.push_back(
        {process_at(rows, 0), process_at(rows, 2), rows.bytes(4), optional_time_at(rows, 5)});
  }
}

Result<void> LeaseTables::write_commands(const StoredLease& lease) {
  GPUROTA_ASSIGN_OR_RETURN(
      auto insert, database_.prepare("INSERT INTO lease_command VALUES (?, ?, ?, ?, ?, ?, ?, ?)"));
  std::int64_t position = 0;
  for (const ports::StoredCommand& command : lease.commands) {
    insert.bind(to_integer(lease.id.value)).bind(position++);
    insert.bind(command.holder.pid).bind(to_integer(command.holder.start_ticks));
    insert.bind(command.main.pid).bind(to_integer(command.main.start_ticks));
    GPUROTA_TRY(insert.bind_blob(command.cgroup).bind(to_integer(command.ends)).run());
  }
  return {};
}

Result<void> LeaseTables::remove(LeaseId id) {
  GPUROTA_ASSIGN_OR_RETURN(auto statement, database_.prepare("DELETE FROM lease WHERE id = ?"));
  return statement.bind(to_integer(id.value)).run();
}

}  // namespace gpurota::store
