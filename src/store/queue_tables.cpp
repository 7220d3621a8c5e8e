#include "store/queue_tables.h"

#include "store/columns.h"

#include <chrono>
#include <sstream>

namespace gpurota::store {
namespace {

using std::chrono::milliseconds;

// A size takes two columns; both are null where there is none.
void bind_size(Statement& statement, const std::optional<SizeSpec>& size) {
  const bool percent = size && size->percent > 0;
  statement.bind(size && !percent ? Integer(to_integer(size->bytes.count())) : Integer());
  statement.bind(percent ? Integer(size->percent) : Integer());
}

std::optional<SizeSpec> size_at(const Statement& row, int column) {
  if (!row.is_null(column)) {
    return SizeSpec{Bytes(from_integer(row.integer(column))), 0};
  }
  if (row.is_null(column + 1)) return std::nullopt;
  return SizeSpec{Bytes(), static_cast<int>(row.integer(column + 1))};
}

std::string joined(const std::vector<GpuUuid>& gpus) {
  std::string text;
  for (const GpuUuid& gpu : gpus) text += (text.empty() ? "" : " ") + gpu.value;
  return text;
}

std::vector<GpuUuid> uuids_in(const std::string& text) {
  std::vector<GpuUuid> gpus;
  std::istringstream words(text);
  for (std::string word; words >> word;) gpus.push_back(GpuUuid{word});
  return gpus;
}

constexpr const char* kSelectRequests =
    "SELECT id, uid, kind, ticket, since_ms, gpus, memory_bytes, memory_percent, soft_bytes,"
    " soft_percent, lasts_ms, take_over, as_name, note, holder_pid, holder_start, boot_id,"
    " threshold_bytes, swap, priority, quantum_ms, oversize, gpu_type, min_memory_bytes, min_cc,"
    " near, name, begins_ms, kept, gpu_class, among, blocked_ms, protected_ms, placed_ms, on_time,"
    " used, warn_s, warn_signal, latency, compute, compute_max"
    " FROM request ORDER BY since_ms, id";

ports::StoredRequest request_at(const Statement& row) {
  ports::StoredRequest request;
  request.id.value = from_integer(row.integer(0));
  request.uid = static_cast<uid_t>(row.integer(1));
  request.kind = row.bytes(2);
  request.ticket = row.bytes(3);
  request.since = time_at(row, 4);
  request.count = static_cast<int>(row.integer(5));
  request.memory = size_at(row, 6);
  request.soft_limit = size_at(row, 8);
  if (!row.is_null(10)) request.lasts = milliseconds(row.integer(10));
  request.take_over = row.integer(11) != 0;
  request.as_name = row.bytes(12);
  request.note = row.bytes(13);
  request.holder = process_at(row, 14);
  request.boot_id = row.bytes(16);
  request.threshold = bytes_at(row, 17);
  request.swap = row.integer(18) != 0;
  request.priority = static_cast<int>(row.integer(19));
  if (!row.is_null(20)) request.quantum = milliseconds(row.integer(20));
  request.oversize = row.integer(21) != 0;
  request.wishes.type = row.bytes(22);
  request.wishes.min_memory = Bytes(from_integer(row.integer(23)));
  request.wishes.min_cc = static_cast<int>(row.integer(24));
  request.wishes.near = uuids_in(row.bytes(25));
  request.name = row.bytes(26);
  request.begins = optional_time_at(row, 27);
  request.kept = uuids_in(row.bytes(28));
  request.wishes.gpu_class = row.bytes(29);
  request.wishes.among = uuids_in(row.bytes(30));
  request.blocked = milliseconds(row.integer(31));
  request.protected_for = milliseconds(row.integer(32));
  request.placed = optional_time_at(row, 33);
  request.on_time = row.integer(34) != 0;
  request.used = row.integer(35) != 0;
  request.warning = {std::chrono::seconds(row.integer(36)), static_cast<int>(row.integer(37))};
  request.latency = latency_at(row, 38);
  request.compute = {static_cast<int>(row.integer(39)), static_cast<int>(row.integer(40))};
  return request;
}

}  // namespace

Result<std::vector<ports::StoredRequest>> QueueTables::load_requests() {
  std::vector<ports::StoredRequest> requests;
  GPUROTA_ASSIGN_OR_RETURN(auto rows, database_.prepare(kSelectRequests));
  for (;;) {
    GPUROTA_ASSIGN_OR_RETURN(const bool row, rows.step());
    if (!row) return requests;
    requests.push_back(request_at(rows));
    GPUROTA_TRY(load_parts(requests.back()));
  }
}

Result<void> QueueTables::load_parts(ports::StoredRequest& request) {
  GPUROTA_ASSIGN_OR_RETURN(
      auto gpus,
      database_.prepare("SELECT uuid FROM request_gpu WHERE request = ? ORDER BY position"));
  gpus.bind(to_integer(request.id.value));
  for (;;) {
    GPUROTA_ASSIGN_OR_RETURN(const bool row, gpus.step());
    if (!row) break;
    request.gpus.push_back(GpuUuid{gpus.bytes(0)});
  }
  GPUROTA_ASSIGN_OR_RETURN(
      auto arguments,
      database_.prepare("SELECT value FROM request_argument WHERE request = ? ORDER BY position"));
  arguments.bind(to_integer(request.id.value));
  for (;;) {
    GPUROTA_ASSIGN_OR_RETURN(const bool row, arguments.step());
    if (!row) return {};
    request.command.push_back(arguments.bytes(0));
  }
}

Result<void> QueueTables::save_request(const ports::StoredRequest& request) {
  const std::int64_t id = to_integer(request.id.value);
  GPUROTA_ASSIGN_OR_RETURN(auto transaction, Transaction::begin(database_));
  GPUROTA_TRY(remove_request(request.id));
  GPUROTA_ASSIGN_OR_RETURN(
      auto insert,
      database_.prepare("INSERT INTO request (id, uid, kind, ticket, since_ms, gpus, memory_bytes,"
                        " memory_percent, soft_bytes, soft_percent, lasts_ms, take_over, as_name,"
                        " note, holder_pid, holder_start, boot_id, threshold_bytes, swap, priority,"
                        " quantum_ms, oversize, gpu_type, min_memory_bytes, min_cc, near, name,"
                        " begins_ms, kept, gpu_class, among, blocked_ms, protected_ms, placed_ms,"
                        " on_time, used, warn_s, warn_signal, latency, compute,"
                        " compute_max) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?,"
                        " ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
                        " ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  insert.bind(id).bind(request.uid).bind_text(request.kind).bind_text(request.ticket);
  insert.bind(to_integer(request.since)).bind(request.count);
  bind_size(insert, request.memory);
  bind_size(insert, request.soft_limit);
  insert.bind(request.lasts ? Integer(request.lasts->count()) : Integer());
  insert.bind(request.take_over ? 1 : 0).bind_blob(request.as_name).bind_blob(request.note);
  insert.bind(request.holder.pid).bind(to_integer(request.holder.start_ticks));
  insert.bind_text(request.boot_id);
  insert.bind(to_integer(request.threshold));
  insert.bind(request.swap ? 1 : 0).bind(request.priority);
  insert.bind(request.quantum ? Integer(request.quantum->count()) : Integer());
  insert.bind(request.oversize ? 1 : 0).bind_blob(request.wishes.type);
  insert.bind(to_integer(request.wishes.min_memory.count())).bind(request.wishes.min_cc);
  insert.bind_text(joined(request.wishes.near)).bind_text(request.name);
  insert.bind(to_integer(request.begins)).bind_text(joined(request.kept));
  insert.bind_blob(request.wishes.gpu_class).bind_text(joined(request.wishes.among));
  insert.bind(request.blocked.count()).bind(request.protected_for.count());
  insert.bind(to_integer(request.placed)).bind(request.on_time ? 1 : 0).bind(request.used ? 1 : 0);
  insert.bind(request.warning.before.count()).bind(request.warning.signal);
  insert.bind_text(to_string(request.latency));
  GPUROTA_TRY(insert.bind(request.compute.least).bind(request.compute.most).run());
  GPUROTA_ASSIGN_OR_RETURN(auto gpu, database_.prepare("INSERT INTO request_gpu VALUES (?, ?, ?)"));
  for (std::size_t i = 0; i < request.gpus.size(); ++i) {
    GPUROTA_TRY(gpu.bind(id).bind(to_integer(i)).bind_text(request.gpus[i].value).run());
  }
  GPUROTA_ASSIGN_OR_RETURN(auto argument,
                           database_.prepare("INSERT INTO request_argument VALUES (?, ?, ?)"));
  for (std::size_t i = 0; i < request.command.size(); ++i) {
    GPUROTA_TRY(argument.bind(id).bind(to_integer(i)).bind_blob(request.command[i]).run());
  }
  return transaction.commit();
}

Result<void> QueueTables::remove_request(RequestId id) {
  GPUROTA_ASSIGN_OR_RETURN(auto statement, database_.prepare("DELETE FROM request WHERE id = ?"));
  return statement.bind(to_integer(id.value)).run();
}

Result<std::vector<ports::StoredGpuState>> QueueTables::load_gpus() {
  std::vector<ports::StoredGpuState> gpus;
  GPUROTA_ASSIGN_OR_RETURN(
      auto rows,
      database_.prepare("SELECT uuid, draining, drain_reason, idle_since_ms, last_uid,"
                        " capacity_bytes, capacity_percent, quantum_ms, turns, context_bytes,"
                        " context_driver, kept_ms, baseline_bytes, baseline_boot FROM gpu"));
  for (;;) {
    GPUROTA_ASSIGN_OR_RETURN(const bool row, rows.step());
    if (!row) break;
    ports::StoredGpuState& gpu = gpus.emplace_back();
    gpu.uuid = GpuUuid{rows.bytes(0)};
    gpu.draining = rows.integer(1) != 0;
    gpu.drain_reason = rows.bytes(2);
    gpu.idle_since = time_at(rows, 3);
    if (!rows.is_null(4)) gpu.last_user = static_cast<uid_t>(rows.integer(4));
    gpu.capacity = size_at(rows, 5);
    if (!rows.is_null(7)) gpu.quantum = milliseconds(rows.integer(7));
    gpu.turns = rows.bytes(8);
    gpu.context_cost = Bytes(from_integer(rows.integer(9)));
    gpu.context_driver = rows.bytes(10);
    gpu.kept = milliseconds(rows.integer(11));
    if (!rows.is_null(12)) {
      gpu.baseline = ports::StoredBaseline{Bytes(from_integer(rows.integer(12))), rows.bytes(13)};
    }
  }
  for (ports::StoredGpuState& gpu : gpus) {
    GPUROTA_ASSIGN_OR_RETURN(gpu.ages, load_ages(gpu.uuid));
  }
  return gpus;
}

Result<void> QueueTables::save_gpu(const ports::StoredGpuState& gpu) {
  GPUROTA_ASSIGN_OR_RETURN(auto transaction, Transaction::begin(database_));
  GPUROTA_ASSIGN_OR_RETURN(
      auto insert,
      database_.prepare("INSERT OR REPLACE INTO gpu (uuid, draining, drain_reason, idle_since_ms,"
                        " last_uid, capacity_bytes, capacity_percent, quantum_ms, turns,"
                        " context_bytes, context_driver, kept_ms, baseline_bytes, baseline_boot)"
                        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  insert.bind_text(gpu.uuid.value).bind(gpu.draining ? 1 : 0).bind_blob(gpu.drain_reason);
  insert.bind(to_integer(gpu.idle_since));
  insert.bind(gpu.last_user ? Integer(*gpu.last_user) : Integer());
  bind_size(insert, gpu.capacity);
  insert.bind(gpu.quantum ? Integer(gpu.quantum->count()) : Integer());
  insert.bind_text(gpu.turns).bind(to_integer(gpu.context_cost.count()));
  insert.bind_blob(gpu.context_driver).bind(gpu.kept.count());
  insert.bind(gpu.baseline ? Integer(to_integer(gpu.baseline->bytes.count())) : Integer());
  GPUROTA_TRY(insert.bind_text(gpu.baseline ? gpu.baseline->boot_id : "").run());
  GPUROTA_TRY(save_ages(gpu));
  return transaction.commit();
}

Result<std::vector<ports::StoredAge>> QueueTables::load_ages(const GpuUuid& gpu) {
  GPUROTA_ASSIGN_OR_RETURN(
      auto rows, database_.prepare("SELECT finding, uid, lease, since_ms, pid, start_ticks, boot_id"
                                   " FROM watch_age WHERE gpu = ? ORDER BY rowid"));
  rows.bind_text(gpu.value);
  std::vector<ports::StoredAge> ages;
  for (;;) {
    GPUROTA_ASSIGN_OR_RETURN(const bool row, rows.step());
    if (!row) return ages;
    ports::StoredAge& age = ages.emplace_back();
    age.finding = rows.bytes(0);
    if (!rows.is_null(1)) age.uid = static_cast<uid_t>(rows.integer(1));
    if (!rows.is_null(2)) age.lease = LeaseId{from_integer(rows.integer(2))};
    age.since = time_at(rows, 3);
    age.process = optional_process_at(rows, 4);
    age.boot_id = rows.bytes(6);
  }
}

Result<void> QueueTables::save_ages(const ports::StoredGpuState& gpu) {
  GPUROTA_ASSIGN_OR_RETURN(auto old, database_.prepare("DELETE FROM watch_age WHERE gpu = ?"));
  GPUROTA_TRY(old.bind_text(gpu.uuid.value).run());
  for (const ports::StoredAge& age : gpu.ages) {
    GPUROTA_ASSIGN_OR_RETURN(
        auto insert, database_.prepare("INSERT INTO watch_age VALUES (?, ?, ?, ?, ?, ?, ?, ?)"));
    insert.bind_text(gpu.uuid.value).bind_text(age.finding);
    insert.bind(age.uid ? Integer(*age.uid) : Integer());
    insert.bind(age.lease ? Integer(to_integer(age.lease->value)) : Integer());
    insert.bind(to_integer(age.since));
    bind_process(insert, age.process);
    GPUROTA_TRY(insert.bind_text(age.boot_id).run());
  }
  return {};
}

}  // namespace gpurota::store
