#include "store/sqlite_series.h"

#include <fmt/core.h>
#include <sqlite3.h>

#include <array>
#include <cerrno>
#include <cstdio>

#include <unistd.h>

namespace gpurota::store {
namespace {

constexpr std::int64_t kVersion = 1;
// A log of some megabytes.
constexpr int kSavesInLog = 30;

// A row's id is its place in its ring, so that a row replaces the row of one round ago.
constexpr const char* kTables = R"sql(
CREATE TABLE step (
  id INTEGER PRIMARY KEY,          -- ring << 32 | place in it
  number INTEGER NOT NULL,         -- of the step, counted from 1970
  data BLOB NOT NULL               -- src/series/row.h
) STRICT;
PRAGMA user_version = 1;
)sql";

std::int64_t id_of(const SeriesRow& row) { return (std::int64_t{row.ring} << 32) | row.place; }

bool is_damage(const Error& error) {
  if (error.code != Code::kIo) return false;
  const int result = error.native & 0xff;
  // SQLITE_ERROR: the table is missing, or has other columns.
  return result == SQLITE_CORRUPT || result == SQLITE_NOTADB || result == SQLITE_ERROR;
}

Result<std::int64_t> read_user_version(Database& database) {
  GPUROTA_ASSIGN_OR_RETURN(auto statement, database.prepare("PRAGMA user_version"));
  GPUROTA_TRY(statement.step());
  return statement.integer(0);
}

}  // namespace

Result<void> SqliteSeries::begin() {
  database_.reset();
  GPUROTA_ASSIGN_OR_RETURN(Database database, Database::open(path_));
  GPUROTA_ASSIGN_OR_RETURN(const std::int64_t version, read_user_version(database));
  if (version > kVersion) {
    return fail(
        Code::kInvalid,
        fmt::format("{} was written by a newer gpurota: move it away to begin a new one", path_));
  }
  if (version == 0) {
    GPUROTA_ASSIGN_OR_RETURN(auto transaction, Transaction::begin(database));
    GPUROTA_TRY(database.execute(kTables));
    GPUROTA_TRY(transaction.commit());
  }
  database.accept();
  database_.emplace(std::move(database));
  return {};
}

Result<std::vector<SeriesRow>> SqliteSeries::read() {
  std::vector<SeriesRow> rows;
  GPUROTA_ASSIGN_OR_RETURN(auto select,
                           database_->prepare("SELECT id, number, data FROM step ORDER BY id"));
  for (;;) {
    GPUROTA_ASSIGN_OR_RETURN(const bool row, select.step());
    if (!row) return rows;
    const std::int64_t id = select.integer(0);
    rows.push_back({.ring = static_cast<int>(id >> 32),
                    .number = select.integer(1),
                    .place = id & 0xffffffff,
                    .data = select.bytes(2)});
  }
}

Result<void> SqliteSeries::put_aside() {
  database_.reset();
  const std::string aside = path_ + ".damaged";
  for (const char* suffix : {"", "-wal"}) {
    const std::string from = path_ + suffix;
    if (std::rename(from.c_str(), (aside + suffix).c_str()) != 0 && errno != ENOENT) {
      return fail_errno("cannot move the damaged " + from + " away", errno);
    }
  }
  return {};
}

Result<ports::LoadedSeries> SqliteSeries::load() {
  ports::LoadedSeries loaded;
  const auto all = [this]() -> Result<std::vector<SeriesRow>> {
    GPUROTA_TRY(begin());
    return read();
  };
  auto rows = all();
  if (!rows && is_damage(rows.error())) {
    GPUROTA_TRY(put_aside());
    loaded.trouble = fmt::format(
        "{0} was damaged: a new one has been begun, and the old one is {0}.damaged", path_);
    rows = all();
  }
  if (!rows) return tl::unexpected<Error>(std::move(rows).error());
  loaded.rows = std::move(*rows);
  return loaded;
}

// Reports damage in its own words: the message of the leases' database tells the reader to move
// that database away.
Result<void> SqliteSeries::save(const std::vector<SeriesRow>& rows) {
  if (!database_) return fail(Code::kUnavailable, path_ + " is not open");
  auto written = write(rows);
  if (written || !is_damage(written.error())) return written;
  return fail(Code::kIo, path_ + " is damaged: it is moved away and a new one begun",
              written.error().native);
}

Result<void> SqliteSeries::write(const std::vector<SeriesRow>& rows) {
  GPUROTA_ASSIGN_OR_RETURN(auto transaction, Transaction::begin(*database_));
  GPUROTA_ASSIGN_OR_RETURN(auto put,
                           database_->prepare("INSERT OR REPLACE INTO step VALUES (?, ?, ?)"));
  GPUROTA_ASSIGN_OR_RETURN(auto remove,
                           database_->prepare("DELETE FROM step WHERE id = ? AND number = ?"));
  for (const SeriesRow& row : rows) {
    if (row.data.empty()) {
      GPUROTA_TRY(remove.bind(id_of(row)).bind(row.number).run());
    } else {
      GPUROTA_TRY(put.bind(id_of(row)).bind(row.number).bind_blob(row.data).run());
    }
  }
  GPUROTA_TRY(transaction.commit());
  if (++saves_ < kSavesInLog) return {};
  saves_ = 0;
  return database_->checkpoint();
}

}  // namespace gpurota::store
