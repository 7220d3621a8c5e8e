// Keeps the rings of figures over time (src/series) beyond the daemon. SQLite in production, a file
// of its own: damage to the file never affects leases.
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
  // Opens the store. Call first, and again after it has failed.
  virtual Result<LoadedSeries> load() = 0;
  // Saves all rows or none. Each row replaces the row of one round ago at the same place in its
  // ring.
  virtual Result<void> save(const std::vector<SeriesRow>& rows) = 0;
};

}  // namespace gpurota::ports
