#include "store/sqlite_store.h"

#include "base/directory.h"
#include "base/lock_file.h"
#include "store/columns.h"
#include "store/schema.h"
#include "store/sequences.h"

#include <fmt/core.h>

#include <chrono>
#include <utility>

#include <unistd.h>

namespace gpurota::store {
namespace {

// How many times the database has been settled; 0: never, or it is not a database of ours yet.
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
  std::optional<StoreMark> mark;
  std::optional<LogPosition> log;
  if (!state_dir.empty()) {
    GPUROTA_ASSIGN_OR_RETURN(mark, read_mark(state_dir));
    GPUROTA_TRY(check_is_there(state_dir, path));
    // Opening the database makes a log where there is none.
    const bool has_log = ::access((path + "-wal").c_str(), F_OK) == 0 || errno != ENOENT;
    if (has_log) {
      GPUROTA_ASSIGN_OR_RETURN(log, read_log(path + "-wal"));
    }
  }
  GPUROTA_ASSIGN_OR_RETURN(auto database, Database::open(path));
  std::uint64_t settled = 0;
  if (mark) {
    GPUROTA_ASSIGN_OR_RETURN(settled, times_settled(database));
    GPUROTA_TRY(check_is_whole(state_dir, path, *mark, settled, log));
  }
  database.accept();
  std::unique_ptr<SqliteStore> store(
      new SqliteStore(std::move(lock), state_dir, std::move(database)));
  if (mark) store->log_.begin_marks({settled, mark->log});
  GPUROTA_TRY(upgrade_schema(store->database_));
  // A full disk does not keep the store from opening. `gpurota doctor` says that the disk is full,
  // and settling is tried again.
  (void)store->settle();
  return store;
}

bool SqliteStore::needs_settling() const {
  return !state_dir_.empty() && database_.changes() != settled_changes_;
}

// The count goes into the new log and onto the disk first, and only then into the mark: whatever
// happens in between, the database's count is at least that of the mark.
Result<void> SqliteStore::settle() {
  if (!needs_settling()) return {};
  GPUROTA_TRY(log_.end_marks());
  GPUROTA_TRY(database_.checkpoint());
  log_.on_emptied();
  GPUROTA_TRY(database_.execute("INSERT OR IGNORE INTO sequence VALUES ('settled', 0)"));
  GPUROTA_ASSIGN_OR_RETURN(const std::uint64_t settled, next_number(database_, "settled"));
  GPUROTA_TRY(log_.sync());
  GPUROTA_TRY(replace_mark(mark_path(state_dir_), {settled, {}}));
  log_.begin_marks({settled, {}});
  GPUROTA_TRY(log_.sync());
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

Result<void> SqliteStore::save_lease(const ports::StoredLease& lease) {
  GPUROTA_ASSIGN_OR_RETURN(auto transaction, Transaction::begin(database_));
  GPUROTA_TRY(leases_.write(lease));
  return transaction.commit();
}

Result<void> SqliteStore::grant_request(RequestId id, const ports::StoredLease& lease) {
  GPUROTA_ASSIGN_OR_RETURN(auto transaction, Transaction::begin(database_));
  GPUROTA_TRY(queue_.remove_request(id));
  GPUROTA_TRY(leases_.write(lease));
  return transaction.commit();
}

Result<SqliteStore::Numbers> SqliteStore::numbers() {
  Numbers numbers;
  for (const auto& [name, last] :
       {std::pair("lease", &numbers.lease), std::pair("request", &numbers.request),
        std::pair("job", &numbers.job), std::pair("filler", &numbers.filler)}) {
    GPUROTA_ASSIGN_OR_RETURN(*last, last_number(database_, name));
  }
  return numbers;
}

Result<LeaseId> SqliteStore::next_lease_id() {
  GPUROTA_ASSIGN_OR_RETURN(const std::uint64_t next, next_number(database_, "lease"));
  return LeaseId{next};
}

Result<RequestId> SqliteStore::next_request_id() {
  GPUROTA_ASSIGN_OR_RETURN(const std::uint64_t next, next_number(database_, "request"));
  return RequestId{next};
}

}  // namespace gpurota::store
