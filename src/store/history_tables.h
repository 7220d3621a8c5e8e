// Events and usage. Used by SqliteStore only.
#pragma once

#include "ports/history.h"
#include "store/database.h"

#include <cstddef>
#include <vector>

namespace gpurota::store {

class HistoryTables {
 public:
  // `database` must outlive this object.
  explicit HistoryTables(Database& database) : database_(database) {}

  Result<void> save(const ports::HistoryBatch& batch);
  Result<std::vector<ports::StoredEvent>> load_events();
  Result<std::vector<ports::StoredUsage>> load_open_usage();
  Result<std::vector<ports::StoredPastBooking>> load_past_bookings();
  Result<std::vector<ports::StoredUsage>> read_usage(LeaseId after, std::size_t most);
  Result<std::vector<ports::UsageSum>> sum_usage_of(uid_t uid, WallTime since, WallTime until);
  Result<std::size_t> count_usage(uid_t uid);
  Result<ports::MergedUsage> merge_usage(const ports::UsageMerge& merge);
  Result<bool> prune_usage(WallTime before, std::size_t most);

 private:
  // Call within a transaction.
  Result<void> save_usage(const std::vector<ports::StoredUsage>& usage);
  Result<void> save_bookings(const ports::HistoryBatch& batch);

  Database& database_;
};

}  // namespace gpurota::store
