// The rings of figures over time in a file of their own, STATE_DIR/history.db. Call only on a
// worker thread (see ports/series_store.h).
//
// A damaged file is renamed (history.db.damaged, in place of an earlier one) and a new one begun. A
// file of a newer gpurota is left alone. Neither ever affects the leases' database.
#pragma once

#include "ports/series_store.h"
#include "store/database.h"

#include <optional>
#include <string>

namespace gpurota::store {

class SqliteSeries final : public ports::SeriesStore {
 public:
  explicit SqliteSeries(std::string path) : path_(std::move(path)) {}

  Result<ports::LoadedSeries> load() override;
  Result<void> save(const std::vector<SeriesRow>& rows) override;

 private:
  Result<void> begin();
  Result<std::vector<SeriesRow>> read();
  Result<void> write(const std::vector<SeriesRow>& rows);
  Result<void> put_aside();

  std::string path_;
  std::optional<Database> database_;
  int saves_ = 0;  // since the last checkpoint
};

}  // namespace gpurota::store
