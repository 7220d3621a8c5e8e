#include "store/sqlite_store.h"

#include "base/directory.h"
#include "base/lock_file.h"
#include "store/columns.h"
#include "store/schema.h"
#include "store/store_mark.h"

#include <fmt/core.h>

#include <chrono>
#include <utility>

namespace gpurota::store {
namespace {

using ports::StoredGpu;
using ports::StoredLease;

constexpr const char* kSelectLeases =
    "SELECT id, uid, kind, token, since_ms, note, holder_pid, holder_start, main_pid, main_start, "
    "cgroup,"
    " boot_id, ending, subreaper, ends_ms, as_name, ticket, priority,"
    " quantum_ms, name, containers FROM lease ORDER BY id";
constexpr const char* kInsertLease =
    "INSERT INTO lease (id, uid, kind, token, since_ms, note, holder_pid, holder_start, main_pid,"
    " main_start, cgroup, boot_id, ending, subreaper, ends_ms, as_name, ticket, priority,"
    " quantum_ms, name, containers) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
    "?, ?, ?)";

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
  return lease;
}

// 0: never, or it is not a database of ours yet.
Result<std::uint64_t> times_settled(Database& database) {
  GPUROTA_ASSIGN_OR_RETURN(auto table,
                           database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'sequence'"));
  GPUROTA_ASSIGN_OR_RETURN(const bool has_table, table.step());
  if (!has_table) return std::uint64_t{0};
  GPUROTA_ASSIGN_OR_RETURN(auto statement,
                           database.prepare("SELECT last FROM sequence WHERE name = 'settled'"));
  GPUROTA_ASSIGN_OR_RETURN(const bool row, statement.step());
  return row ? from_integer(statement.integer(0)) : std::uint64_t{0};
}

}  // namespace

Result<std::unique_ptr<SqliteStore>> SqliteStore::make(Fd lock, const std::string& state_dir) {
  const std::string path = state_dir.empty() ? ":memory:" : state_dir + "/gpurota.db";
  std::optional<std::uint64_t> mark;
  if (!state_dir.empty()) {
    GPUROTA_ASSIGN_OR_RETURN(mark, read_mark(state_dir));
    GPUROTA_TRY(check_is_there(state_dir, path));
  }
  GPUROTA_ASSIGN_OR_RETURN(auto database, Database::open(path));
  if (mark) {
    GPUROTA_ASSIGN_OR_RETURN(const std::uint64_t settled, times_settled(database));
    GPUROTA_TRY(check_is_whole(state_dir, path, mark, settled));
  }
  database.accept();
  GPUROTA_TRY(upgrade_schema(database));
  std::unique_ptr<SqliteStore> store(
      new SqliteStore(std::move(lock), state_dir, std::move(database)));
  // With a full disk it serves all the same, as before; gpurota doctor says that it is full, and this is tried again.
  (void)store->settle();
  return store;
}

bool SqliteStore::needs_settling() const {
  return !state_dir_.empty() && database_.changes() != settled_changes_;
}

// The count first in the new log, and on the disk, then the mark: whatever happens in between, the database knows as much as the
// mark.
Result<void> SqliteStore::settle() {
  if (!needs_settling()) return {};
  GPUROTA_TRY(database_.checkpoint());
  log_.on_emptied();
  GPUROTA_TRY(database_.execute("INSERT OR IGNORE INTO sequence VALUES ('settled', 0)"));
  GPUROTA_ASSIGN_OR_RETURN(const std::uint64_t settled, next_of("settled"));
  GPUROTA_TRY(log_.sync());
  GPUROTA_TRY(write_mark(state_dir_, settled));
  settled_changes_ = database_.changes();
  return {};
}

Result<std::unique_ptr<SqliteStore>> SqliteStore::open(const std::string& state_dir,
                                                       std::chrono::milliseconds patience) {
  GPUROTA_TRY(make_directory(state_dir, 0700));
  auto lock = lock_file(state_dir + "/state.lock", patience);
  if (!lock && lock.error().code == Code::kLimit) {
    return fail(
        Code::kInvalid,
        fmt::format("another gpurotad (process {}) uses the state directory {}: stop it, or choose "
                    "another with --state-dir",
                    lock.error().native, state_dir));
  }
  if (!lock) return tl::unexpected<Error>(std::move(lock).error());
  return make(std::move(*lock), state_dir);
}

Result<std::unique_ptr<SqliteStore>> SqliteStore::open_in_memory() { return make(Fd(), ""); }

Result<std::vector<StoredLease>> SqliteStore::load_leases() {
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

Result<void> SqliteStore::load_parts(StoredLease& lease) {
  GPUROTA_ASSIGN_OR_RETURN(
      auto gpus,
      database_.prepare("SELECT uuid, limit_bytes, soft_limit_bytes, swap, oversize_bytes,"
                        " highest_limit_bytes"
                        " FROM lease_gpu WHERE lease = ? ORDER BY position"));
  gpus.bind(to_integer(lease.id.value));
  for (;;) {
    GPUROTA_ASSIGN_OR_RETURN(const bool row, gpus.step());
    if (!row) break;
    lease.gpus.push_back(StoredGpu{GpuUuid{gpus.bytes(0)}, bytes_at(gpus, 1), bytes_at(gpus, 2),
                                   gpus.integer(3) != 0, Bytes(from_integer(gpus.integer(4))),
                                   Bytes(from_integer(gpus.integer(5)))});
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

Result<void> SqliteStore::save_lease(const StoredLease& lease) {
  GPUROTA_ASSIGN_OR_RETURN(auto transaction, Transaction::begin(database_));
  GPUROTA_TRY(write_lease(lease));
  return transaction.commit();
}

Result<void> SqliteStore::grant_request(RequestId id, const StoredLease& lease) {
  GPUROTA_ASSIGN_OR_RETURN(auto transaction, Transaction::begin(database_));
  GPUROTA_TRY(remove_request(id));
  GPUROTA_TRY(write_lease(lease));
  return transaction.commit();
}

Result<void> SqliteStore::write_lease(const StoredLease& lease) {
  GPUROTA_ASSIGN_OR_RETURN(auto remove, database_.prepare("DELETE FROM lease WHERE id = ?"));
  GPUROTA_TRY(remove.bind(to_integer(lease.id.value)).run());
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
  GPUROTA_TRY(insert.bind_text(lease.name).bind_blob(join_containers(lease.containers)).run());
  GPUROTA_TRY(write_commands(lease));
  return save_parts(lease);
}

Result<void> SqliteStore::save_parts(const StoredLease& lease) {
  const std::int64_t id = to_integer(lease.id.value);
  GPUROTA_ASSIGN_OR_RETURN(
      auto gpu, database_.prepare("INSERT INTO lease_gpu VALUES (?, ?, ?, ?, ?, ?, ?, ?)"));
  for (std::size_t i = 0; i < lease.gpus.size(); ++i) {
    const StoredGpu& each = lease.gpus[i];
    gpu.bind(id).bind(to_integer(i)).bind_text(each.uuid.value);
    gpu.bind(to_integer(each.limit)).bind(to_integer(each.soft_limit));
    gpu.bind(each.swap ? 1 : 0);
    gpu.bind(to_integer(each.oversize.count()));
    GPUROTA_TRY(gpu.bind(to_integer(each.highest_limit.count())).run());
  }
  GPUROTA_ASSIGN_OR_RETURN(auto argument,
                           database_.prepare("INSERT INTO lease_argument VALUES (?, ?, ?)"));
  for (std::size_t i = 0; i < lease.command.size(); ++i) {
    GPUROTA_TRY(argument.bind(id).bind(to_integer(i)).bind_blob(lease.command[i]).run());
  }
  return {};
}

Result<void> SqliteStore::remove_lease(LeaseId id) {
  GPUROTA_ASSIGN_OR_RETURN(auto statement, database_.prepare("DELETE FROM lease WHERE id = ?"));
  return statement.bind(to_integer(id.value)).run();
}

Result<std::uint64_t> SqliteStore::next_of(const char* sequence) {
  GPUROTA_ASSIGN_OR_RETURN(
      auto statement,
      database_.prepare("UPDATE sequence SET last = last + 1 WHERE name = ? RETURNING last"));
  GPUROTA_ASSIGN_OR_RETURN(const bool row, statement.bind_text(sequence).step());
  if (!row) {
    return fail(Code::kInternal, fmt::format("{} has no {} sequence", database_.path(), sequence));
  }
  const std::uint64_t next = from_integer(statement.integer(0));
  GPUROTA_TRY(statement.run());  // to the end: only then is it committed
  return next;
}

Result<SqliteStore::Numbers> SqliteStore::numbers() {
  Numbers numbers;
  for (const auto& [name, last] :
       {std::pair("lease", &numbers.lease), std::pair("request", &numbers.request),
        std::pair("job", &numbers.job), std::pair("filler", &numbers.filler)}) {
    GPUROTA_ASSIGN_OR_RETURN(auto row,
                             database_.prepare("SELECT last FROM sequence WHERE name = ?"));
    GPUROTA_ASSIGN_OR_RETURN(const bool there, row.bind_text(name).step());
    if (there) *last = from_integer(row.integer(0));
  }
  return numbers;
}

Result<LeaseId> SqliteStore::next_lease_id() {
  GPUROTA_ASSIGN_OR_RETURN(const std::uint64_t next, next_of("lease"));
  return LeaseId{next};
}

Result<RequestId> SqliteStore::next_request_id() {
  GPUROTA_ASSIGN_OR_RETURN(const std::uint64_t next, next_of("request"));
  return RequestId{next};
}

}  // namespace gpurota::store
