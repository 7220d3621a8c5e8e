// Keeps the rings of figures over time (src/series) beyond the daemon. SQLite in production, a file
// of its own: what happens to it never touches leases.
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
  std::string trouble;  // what became of an earlier file that could not be used; empty: nothing
};

class SeriesStore {
 public:
  virtual ~SeriesStore() = default;
  // Begins; first, and again after it has failed.
  virtual Result<LoadedSeries> load() = 0;
  // All or nothing. Each takes the place of the row that its ring had there one round ago.
  virtual Result<void> save(const std::vector<SeriesRow>& rows) = 0;
};

}  // namespace gpurota::ports
