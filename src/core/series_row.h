// A row of a ring of figures over time (src/series), as it is kept and stored.
#pragma once

#include <cstdint>
#include <string>

namespace gpurota {

// One step of time of one ring: all GPUs and leases in it.
struct SeriesRow {
  int ring = 0;             // 0: the finest
  std::int64_t number = 0;  // of the step, counted from 1970
  std::int64_t place = 0;   // in its ring: that of the step a round ago
  std::string data;         // as series/row.h makes it
  bool operator==(const SeriesRow&) const = default;
};

}  // namespace gpurota
