// A thin, owning layer over SQLite: connections, statements and transactions that return Results.
// Used by SqliteStore only; no SQLite header is needed to include it.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace gpurota::store {

// A prepared statement. Parameters and columns are numbered from 0. The database must outlive it.
class Statement {
 public:
  // The next parameter; nullopt is NULL.
  Statement& bind(std::optional<std::int64_t> value);
  Statement& bind_text(std::string_view value);
  Statement& bind_blob(std::string_view value);  // foreign bytes, kept exactly

  // True while there is a row; false at the end. After the end, or an error, the statement may be
  // bound and run again.
  Result<bool> step();
  // For statements that give no row.
  Result<void> run();

  bool is_null(int column) const;
  std::int64_t integer(int column) const;
  std::string bytes(int column) const;  // of text and blobs

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  Statement(sqlite3* db, sqlite3_stmt* statement, const std::string* path)
      : db_(db), statement_(statement), path_(path) {}
  void check(int result);

  sqlite3* db_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  const std::string* path_;
  int bound_ = 0;
  int bind_result_ = 0;  // the first binding that failed
};

class Database {
 public:
  // Opens or makes the file (mode 0600), or ":memory:", for this process alone. Its write-ahead log
  // is written without waiting for the disk. A damaged file is an error that says what to do;
  // nothing is moved or repaired. A database that is closed before accept() leaves its log as it
  // was found.
  static Result<Database> open(const std::string& path);
  // Accepts the database as valid: from now on closing it writes the log into the file and removes
  // the log.
  void accept();
  // Calls `on_commit` after each change that was written to the log, with the number of the
  // change's last frame.
  void watch_commits(std::function<void(std::uint64_t frames)> on_commit);
  // Writes the log into the file, and empties the log. Returns when the disk has the file.
  Result<void> checkpoint();
  // Rows changed since it was opened.
  std::int64_t changes() const;

  const std::string& path() const { return *path_; }
  Result<void> execute(const char* sql);  // one or more statements, without parameters
  Result<Statement> prepare(const char* sql);

 private:
  struct Close {
    void operator()(sqlite3* db) const;
  };
  Database(sqlite3* db, const std::string& path)
      : db_(db), path_(std::make_unique<std::string>(path)) {}

  std::unique_ptr<sqlite3, Close> db_;
  std::unique_ptr<std::string> path_;  // statements point to it
  using OnCommit = std::function<void(std::uint64_t)>;
  std::unique_ptr<OnCommit> on_commit_;  // SQLite points to it
};

// All or nothing: the destructor undoes what was done since begin(), unless commit() succeeded.
class Transaction {
 public:
  static Result<Transaction> begin(Database& database);
  Transaction(Transaction&& other) noexcept;
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  Result<void> commit();

 private:
  explicit Transaction(Database& database) : database_(&database) {}
  Database* database_;  // null when over
};

}  // namespace gpurota::store
