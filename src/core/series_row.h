// A row of a ring of figures over time (src/series), in the form that is stored.
#pragma once

#include <cstdint>
#include <string>

namespace gpurota {

// One time step of one ring: all GPUs and leases in it.
struct SeriesRow {
  int ring = 0;             // 0: the finest
  std::int64_t number = 0;  // of the step, counted from 1970
  std::int64_t place = 0;   // in its ring; the step one round earlier had the same place
  std::string data;         // encoded as in series/row.h
  bool operator==(const SeriesRow&) const = default;
};

}  // namespace gpurota
