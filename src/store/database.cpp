#include "store/database.h"

#include "base/fd.h"

#include <fmt/core.h>
#include <sqlite3.h>

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>

namespace gpurota::store {
namespace {

constexpr const char* kMemory = ":memory:";
constexpr int kBusyMs = 2000;
constexpr int kMostFrames = 10000;

Error make_error(sqlite3* db, int result, const std::string& path) {
  Error error{Code::kIo, db == nullptr ? result : ::sqlite3_extended_errcode(db), ""};
  // Not every error is recorded on the connection: a value that cannot be bound for lack of memory
  // is not.
  const bool told = db != nullptr && ::sqlite3_errcode(db) != SQLITE_OK;
  const char* reason = told ? ::sqlite3_errmsg(db) : ::sqlite3_errstr(result);
  switch (result & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      error.message = fmt::format(
          "the state in {0} is damaged ({1}). Nothing was changed. To go on without it, stop "
          "gpurotad, "
          "move {0}, {0}-wal and store.mark beside it away and start it again: leases are "
          "forgotten, "
          "so gpurota run ends its commands",
          path, reason);
      break;
    case SQLITE_FULL:
      error.message = fmt::format(
          "cannot store in {}: the disk is full. Make room; nothing stored "
          "before is lost",
          path);
      break;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      error.message = fmt::format("cannot use {}: another program has it open", path);
      break;
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_AUTH:
      error.code = Code::kDenied;
      [[fallthrough]];
    default:
      error.message = fmt::format("cannot use the state in {}: {}", path, reason);
  }
  return error;
}

tl::unexpected<Error> fail_sqlite(sqlite3* db, int result, const std::string& path) {
  return tl::unexpected<Error>(make_error(db, result, path));
}

// Makes the file first, as SQLite would make it readable for others. SQLite gives the log beside it
// the same mode.
Result<void> make_file(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return fail_errno("cannot open " + path, errno);
  if (::fchmod(fd.get(), 0600) != 0) return fail_errno("cannot set the mode of " + path, errno);
  return {};
}

// quick_check reads all pages: those of a few thousand rows in the leases' database, or, on a
// worker, tens of megabytes of figures over time.
Result<void> check_integrity(Database& database) {
  GPUROTA_ASSIGN_OR_RETURN(auto statement, database.prepare("PRAGMA quick_check(1)"));
  GPUROTA_ASSIGN_OR_RETURN(const bool row, statement.step());
  if (row && statement.bytes(0) == "ok") return {};
  return fail_sqlite(nullptr, SQLITE_CORRUPT, database.path());
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const {
  ::sqlite3_finalize(statement);
}
void Database::Close::operator()(sqlite3* db) const { ::sqlite3_close_v2(db); }

void Statement::check(int result) {
  if (bind_result_ == SQLITE_OK) bind_result_ = result;
}

Statement& Statement::bind(std::optional<std::int64_t> value) {
  ++bound_;
  check(value ? ::sqlite3_bind_int64(statement_.get(), bound_, *value)
              : ::sqlite3_bind_null(statement_.get(), bound_));
  return *this;
}

Statement& Statement::bind_text(std::string_view value) {
  check(::sqlite3_bind_text64(statement_.get(), ++bound_,
                              value.data() == nullptr ? "" : value.data(), value.size(),
                              SQLITE_TRANSIENT, SQLITE_UTF8));
  return *this;
}

Statement& Statement::bind_blob(std::string_view value) {
  // A null pointer would be stored as NULL, not as an empty blob.
  check(::sqlite3_bind_blob64(statement_.get(), ++bound_, value.empty() ? "" : value.data(),
                              value.size(), SQLITE_TRANSIENT));
  return *this;
}

Result<bool> Statement::step() {
  int result = std::exchange(bind_result_, SQLITE_OK);
  if (result == SQLITE_OK) result = ::sqlite3_step(statement_.get());
  if (result == SQLITE_ROW) return true;
  bound_ = 0;
  if (result == SQLITE_DONE) {
    ::sqlite3_reset(statement_.get());
    return false;
  }
  const Error error = make_error(db_, result, *path_);
  ::sqlite3_reset(statement_.get());
  return tl::unexpected<Error>(error);
}

Result<void> Statement::run() {
  for (;;) {
    GPUROTA_ASSIGN_OR_RETURN(const bool row, step());
    if (!row) return {};
  }
}

bool Statement::is_null(int column) const {
  return ::sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

std::int64_t Statement::integer(int column) const {
  return ::sqlite3_column_int64(statement_.get(), column);
}

std::string Statement::bytes(int column) const {
  const void* data = ::sqlite3_column_blob(statement_.get(), column);
  const int size = ::sqlite3_column_bytes(statement_.get(), column);
  return data == nullptr
             ? ""
             : std::string(static_cast<const char*>(data), static_cast<std::size_t>(size));
}

Result<Database> Database::open(const std::string& path) {
  if (path != kMemory) GPUROTA_TRY(make_file(path));
  sqlite3* raw = nullptr;
  const int result = ::sqlite3_open_v2(
      path.c_str(), &raw,
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_EXRESCODE,
      nullptr);
  Database database(raw, path);
  if (result != SQLITE_OK) return fail_sqlite(raw, result, path);
  ::sqlite3_busy_timeout(raw, kBusyMs);
  ::sqlite3_db_config(raw, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  // EXCLUSIVE before WAL: no shared-memory file, so the state may be on NFS, as home directories
  // are.
  //
  // synchronous = NORMAL: a commit writes to the log and does not wait for the disk; LogFile does,
  // on a thread that can. A loss of power may then lose the last commits, each of them whole, but
  // nobody has been told that these are done. A checkpoint, and the beginning of a new log, wait
  // for the disk by themselves.
  GPUROTA_TRY(
      database.execute("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL;"
                       "PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON;"
                       "PRAGMA trusted_schema = OFF;"));
  // The database's users checkpoint its log; the automatic checkpoint is only for a log that grows
  // far too large meanwhile.
  ::sqlite3_wal_autocheckpoint(raw, kMostFrames);
  GPUROTA_TRY(check_integrity(database));
  return database;
}

void Database::accept() {
  ::sqlite3_db_config(db_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, nullptr);
}

// SQLite has only one such hook, so this hook replaces that of sqlite3_wal_autocheckpoint, and does
// its work.
void Database::watch_commits(std::function<void(std::uint64_t frames)> on_commit) {
  on_commit_ = std::make_unique<OnCommit>(std::move(on_commit));
  const auto hook = [](void* self, sqlite3* db, const char* name, int frames) {
    (*static_cast<OnCommit*>(self))(static_cast<std::uint64_t>(frames));
    if (frames >= kMostFrames) (void)::sqlite3_wal_checkpoint(db, name);
    return SQLITE_OK;
  };
  ::sqlite3_wal_hook(db_.get(), hook, on_commit_.get());
}

Result<void> Database::checkpoint() {
  const int result =
      ::sqlite3_wal_checkpoint_v2(db_.get(), nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
  if (result != SQLITE_OK) return fail_sqlite(db_.get(), result, *path_);
  return {};
}

std::int64_t Database::changes() const { return ::sqlite3_total_changes64(db_.get()); }

Result<void> Database::execute(const char* sql) {
  const int result = ::sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr);
  if (result != SQLITE_OK) return fail_sqlite(db_.get(), result, *path_);
  return {};
}

Result<Statement> Database::prepare(const char* sql) {
  sqlite3_stmt* statement = nullptr;
  const int result = ::sqlite3_prepare_v2(db_.get(), sql, -1, &statement, nullptr);
  if (result != SQLITE_OK) return fail_sqlite(db_.get(), result, *path_);
  return Statement(db_.get(), statement, path_.get());
}

Result<Transaction> Transaction::begin(Database& database) {
  GPUROTA_TRY(database.execute("BEGIN IMMEDIATE"));
  return Transaction(database);
}

Transaction::Transaction(Transaction&& other) noexcept
    : database_(std::exchange(other.database_, nullptr)) {}

Transaction::~Transaction() {
  // SQLite may have rolled back by itself (a full disk); it then refuses this, which does no harm.
  if (database_ != nullptr) (void)database_->execute("ROLLBACK");
}

Result<void> Transaction::commit() {
  GPUROTA_TRY(database_->execute("COMMIT"));
  database_ = nullptr;
  return {};
}

}  // namespace gpurota::store
