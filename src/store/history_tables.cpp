#include "store/history_tables.h"

#include "store/columns.h"
#include "store/usage_merge.h"

#include <fmt/core.h>

#include <algorithm>

namespace gpurota::store {
namespace {

using ports::StoredEvent;
using ports::StoredUsage;

StoredEvent event_at(const Statement& row) {
  StoredEvent event;
  event.id = from_integer(row.integer(0));
  event.time = time_at(row, 1);
  event.type = row.bytes(2);
  if (!row.is_null(3)) event.lease = LeaseId{from_integer(row.integer(3))};
  if (!row.is_null(4)) event.gpu_index = static_cast<int>(row.integer(4));
  event.gpu.value = row.bytes(5);
  if (!row.is_null(6)) event.uid = static_cast<uid_t>(row.integer(6));
  event.finding = row.bytes(7);
  event.bytes = bytes_at(row, 8);
  event.count = from_integer(row.integer(9));
  event.message = row.bytes(10);
  event.pids = split_pids(row.bytes(11));
  event.detail = row.bytes(12);
  return event;
}

StoredUsage usage_at(const Statement& row) {
  StoredUsage usage;
  usage.lease.value = from_integer(row.integer(0));
  usage.gpu.value = row.bytes(1);
  usage.uid = static_cast<uid_t>(row.integer(2));
  usage.group = row.bytes(3);
  usage.kind = row.bytes(4);
  usage.note = row.bytes(5);
  usage.since = time_at(row, 6);
  usage.until = time_at(row, 7);
  usage.open = row.integer(8) != 0;
  usage.gpu_ms = from_integer(row.integer(9));
  usage.mib_ms = from_integer(row.integer(10));
  usage.merged = from_integer(row.integer(11));
  usage.merged_first = from_integer(row.integer(12));
  usage.busy_ms = from_integer(row.integer(13));
  usage.idle_ms = from_integer(row.integer(14));
  return usage;
}

}  // namespace

Result<void> HistoryTables::save(const ports::HistoryBatch& batch) {
  GPUROTA_ASSIGN_OR_RETURN(auto transaction, Transaction::begin(database_));
  GPUROTA_ASSIGN_OR_RETURN(auto event,
                           database_.prepare("INSERT OR REPLACE INTO event VALUES"
                                             " (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  for (const StoredEvent& each : batch.events) {
    event.bind(to_integer(each.id)).bind(to_integer(each.time)).bind_text(each.type);
    event.bind(each.lease ? Integer(to_integer(each.lease->value)) : Integer());
    event.bind(each.gpu_index ? Integer(*each.gpu_index) : Integer()).bind_text(each.gpu.value);
    event.bind(each.uid ? Integer(*each.uid) : Integer()).bind_text(each.finding);
    event.bind(to_integer(each.bytes));
    event.bind(to_integer(each.count)).bind_blob(each.message).bind_text(join_pids(each.pids));
    GPUROTA_TRY(event.bind_blob(each.detail).run());
  }
  GPUROTA_ASSIGN_OR_RETURN(auto forget, database_.prepare("DELETE FROM event WHERE id = ?"));
  for (const std::uint64_t id : batch.forgotten) GPUROTA_TRY(forget.bind(to_integer(id)).run());
  GPUROTA_TRY(save_usage(batch.usage));
  GPUROTA_TRY(save_bookings(batch));
  return transaction.commit();
}

Result<void> HistoryTables::save_usage(const std::vector<StoredUsage>& usage) {
  GPUROTA_ASSIGN_OR_RETURN(auto row, database_.prepare("INSERT OR REPLACE INTO usage VALUES"
                                                       " (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
                                                       " ?, ?)"));
  for (const StoredUsage& each : usage) {
    row.bind(to_integer(each.lease.value)).bind_text(each.gpu.value).bind(each.uid);
    row.bind_text(each.group).bind_text(each.kind).bind_blob(each.note);
    row.bind(to_integer(each.since)).bind(to_integer(each.until)).bind(each.open ? 1 : 0);
    row.bind(to_integer(each.gpu_ms)).bind(to_integer(each.mib_ms));
    row.bind(to_integer(each.merged)).bind(to_integer(each.merged_first));
    GPUROTA_TRY(row.bind(to_integer(each.busy_ms)).bind(to_integer(each.idle_ms)).run());
  }
  return {};
}

Result<void> HistoryTables::save_bookings(const ports::HistoryBatch& batch) {
  GPUROTA_ASSIGN_OR_RETURN(
      auto row, database_.prepare("INSERT OR REPLACE INTO past_booking VALUES (?, ?, ?, ?, ?, ?)"));
  for (const ports::StoredPastBooking& each : batch.bookings) {
    row.bind(to_integer(each.id.value)).bind(to_integer(each.lease.value)).bind(each.uid);
    row.bind(to_integer(each.from)).bind(to_integer(each.until));
    GPUROTA_TRY(row.bind(to_integer(each.gpu_millionths)).run());
  }
  GPUROTA_ASSIGN_OR_RETURN(auto forget,
                           database_.prepare("DELETE FROM past_booking WHERE request = ?"));
  for (const RequestId id : batch.forgotten_bookings) {
    GPUROTA_TRY(forget.bind(to_integer(id.value)).run());
  }
  return {};
}

Result<std::vector<ports::StoredPastBooking>> HistoryTables::load_past_bookings() {
  std::vector<ports::StoredPastBooking> all;
  GPUROTA_ASSIGN_OR_RETURN(auto rows,
                           database_.prepare("SELECT request, lease, uid, from_ms, until_ms,"
                                             " gpu_millionths FROM past_booking ORDER BY request"));
  for (;;) {
    GPUROTA_ASSIGN_OR_RETURN(const bool row, rows.step());
    if (!row) return all;
    ports::StoredPastBooking& each = all.emplace_back();
    each.id.value = from_integer(rows.integer(0));
    each.lease.value = from_integer(rows.integer(1));
    each.uid = static_cast<uid_t>(rows.integer(2));
    each.from = time_at(rows, 3);
    each.until = time_at(rows, 4);
    each.gpu_millionths = from_integer(rows.integer(5));
  }
}

Result<std::vector<StoredEvent>> HistoryTables::load_events() {
  std::vector<StoredEvent> events;
  GPUROTA_ASSIGN_OR_RETURN(auto rows, database_.prepare("SELECT * FROM event ORDER BY id"));
  for (;;) {
    GPUROTA_ASSIGN_OR_RETURN(const bool row, rows.step());
    if (!row) return events;
    events.push_back(event_at(rows));
  }
}

Result<std::vector<StoredUsage>> HistoryTables::load_open_usage() {
  std::vector<StoredUsage> all;
  GPUROTA_ASSIGN_OR_RETURN(auto rows, database_.prepare("SELECT * FROM usage WHERE open = 1"));
  for (;;) {
    GPUROTA_ASSIGN_OR_RETURN(const bool row, rows.step());
    if (!row) return all;
    all.push_back(usage_at(rows));
  }
}

// All rows of a lease are read together, so a reader that counts leases need not remember which
// ones it has counted.
Result<std::vector<StoredUsage>> HistoryTables::read_usage(LeaseId after, std::size_t most) {
  std::vector<StoredUsage> all;
  GPUROTA_ASSIGN_OR_RETURN(
      auto rows, database_.prepare("SELECT * FROM usage WHERE lease > ? ORDER BY lease, gpu"));
  rows.bind(to_integer(after.value));
  for (;;) {
    GPUROTA_ASSIGN_OR_RETURN(const bool row, rows.step());
    if (!row) return all;
    const LeaseId lease{from_integer(rows.integer(0))};
    if (all.size() >= most && lease != all.back().lease) return all;
    all.push_back(usage_at(rows));
  }
}

Result<std::vector<ports::UsageSum>> HistoryTables::sum_usage_of(uid_t uid, WallTime since,
                                                                 WallTime until) {
  // A row whose beginning and end are the same millisecond counts in full, because its lease
  // existed.
  constexpr const char* kPart =
      "(MIN(until_ms, ?3) - MAX(since_ms, ?2) + (until_ms = since_ms))"
      " / CAST(until_ms - since_ms + (until_ms = since_ms) AS REAL)";
  const std::string sql = fmt::format(
      "SELECT kind, COUNT(DISTINCT CASE merged WHEN 0 THEN lease END) + SUM(merged_first), "
      "CAST(SUM(gpu_ms * {0}) AS INTEGER),"
      " CAST(SUM(mib_ms * {0}) AS INTEGER) FROM usage"
      " WHERE uid = ?1 AND until_ms >= ?2 AND since_ms <= ?3 GROUP BY 1",
      kPart);
  GPUROTA_ASSIGN_OR_RETURN(auto rows, database_.prepare(sql.c_str()));
  rows.bind(uid).bind(to_integer(since)).bind(to_integer(until));
  std::vector<ports::UsageSum> sums;
  for (;;) {
    GPUROTA_ASSIGN_OR_RETURN(const bool row, rows.step());
    if (!row) return sums;
    sums.push_back({uid, rows.bytes(0), from_integer(rows.integer(1)),
                    from_integer(rows.integer(2)), from_integer(rows.integer(3))});
  }
}

Result<std::size_t> HistoryTables::count_usage(uid_t uid) {
  GPUROTA_ASSIGN_OR_RETURN(auto count,
                           database_.prepare("SELECT COUNT(*) FROM usage WHERE uid = ?"));
  GPUROTA_TRY(count.bind(uid).step());
  return static_cast<std::size_t>(count.integer(0));
}

Result<ports::MergedUsage> HistoryTables::merge_usage(const ports::UsageMerge& merge) {
  ports::MergedUsage result{merge.after, true, 0};
  std::vector<StoredUsage> rows;
  GPUROTA_ASSIGN_OR_RETURN(auto select,
                           database_.prepare("SELECT * FROM usage INDEXED BY usage_lease"
                                             " WHERE uid = ? AND lease > ? ORDER BY lease, gpu"));
  select.bind(merge.uid).bind(to_integer(merge.after.value));
  for (;;) {
    GPUROTA_ASSIGN_OR_RETURN(const bool row, select.step());
    if (!row) break;
    StoredUsage usage = usage_at(select);
    if (rows.size() >= merge.most && usage.lease != result.upto) {
      result.over = false;
      break;
    }
    result.upto = usage.lease;
    if (!usage.open) rows.push_back(std::move(usage));
  }
  std::vector<LeaseId> readers = merge.readers;
  std::sort(readers.begin(), readers.end());
  const std::vector<StoredUsage> merged = store::merge_usage(rows, merge.span, readers);
  result.fewer = rows.size() - merged.size();
  if (result.fewer == 0) return result;
  GPUROTA_ASSIGN_OR_RETURN(auto transaction, Transaction::begin(database_));
  GPUROTA_ASSIGN_OR_RETURN(auto remove,
                           database_.prepare("DELETE FROM usage WHERE lease = ? AND gpu = ?"));
  for (const StoredUsage& row : rows) {
    GPUROTA_TRY(remove.bind(to_integer(row.lease.value)).bind_text(row.gpu.value).run());
  }
  GPUROTA_TRY(save_usage(merged));
  GPUROTA_TRY(transaction.commit());
  return result;
}

Result<bool> HistoryTables::prune_usage(WallTime before, std::size_t most) {
  GPUROTA_ASSIGN_OR_RETURN(
      auto statement,
      database_.prepare("DELETE FROM usage WHERE (lease, gpu) IN (SELECT lease, gpu FROM usage"
                        " WHERE open = 0 AND until_ms < ? LIMIT ?)"));
  const std::int64_t changes = database_.changes();
  statement.bind(to_integer(before)).bind(static_cast<std::int64_t>(most));
  GPUROTA_TRY(statement.run());
  return database_.changes() != changes;
}

}  // namespace gpurota::store
