// Stores the rings of figures over time (src/series), so that they outlive the daemon. SQLite in
// production, in a file of its own, so that damage to the file never affects leases.
//
// Blocking: called on a worker thread, one call at a time, never on the state thread.
#pragma once

#include "base/result.h"
#include "core/series_row.h"

#include <string>
#include <vector>

namespace gpurota::ports {

struct LoadedSeries {
  std::vector<SeriesRow> rows;  // of each ring in order
  std::string trouble;  // what happened to an earlier file that could not be used; empty: nothing
};

class SeriesStore {
 public:
  virtual ~SeriesStore() = default;
  // Opens the store. Call first, and again after any call has failed.
  virtual Result<LoadedSeries> load() = 0;
  // Saves all rows or none. Each row replaces the row that was stored at the same place of its ring
  // one round before.
  virtual Result<void> save(const std::vector<SeriesRow>& rows) = 0;
};

}  // namespace gpurota::ports
