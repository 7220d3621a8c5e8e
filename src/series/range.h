// Reads the stored figures of a span of time, at the finest resolution that covers it, in pieces.
// Pure.
#pragma once

#include "series/merger.h"
#include "series/rings.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace gpurota::series {

// Which steps of which ring to read, and how many of them become one point.
struct Plan {
  std::size_t ring = 0;
  std::int64_t first = 0, end = 0;  // steps of the ring; `end` is exclusive
  std::int64_t group = 1;
  std::chrono::seconds step() const { return kShapes[ring].step * group; }
  bool operator==(const Plan&) const = default;
};
// The finest ring that reaches back to `since`, grouped into at most `most_points` points (at least
// two). A ring counts as reaching back even if it lacks the beginning, as long as less is missing
// than one step of the next ring: a query takes some time to arrive.
Plan plan(WallTime since, WallTime until, WallTime now, std::size_t most_points);

struct Point {
  WallTime begins;
  Entry entry;
};

class RangeReader {
 public:
  // `rings` must outlive the reader; changes to it meanwhile may be read or not.
  RangeReader(const Rings& rings, const Plan& plan, std::set<Subject> wanted)
      : rings_(rings), plan_(plan), wanted_(std::move(wanted)), at_(plan.first) {}

  // Reads this many more steps. Returns whether there may be more after them.
  bool go_on(std::int64_t steps);
  const std::vector<Point>& points(const Subject& subject) const;

 private:
  void finish_point();

  const Rings& rings_;
  Plan plan_;
  std::set<Subject> wanted_;
  std::int64_t at_;
  Merger merger_;
  std::map<Subject, std::vector<Point>> points_;
};

}  // namespace gpurota::series
