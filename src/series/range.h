// Reads the stored figures of a span of time, at the resolution that fits it, a piece at a time.
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

// Which steps of which ring, and how many of them become one point.
struct Plan {
  std::size_t ring = 0;
  std::int64_t first = 0, end = 0;  // steps of the ring; `end` is the first that is left out
  std::int64_t group = 1;
  std::chrono::seconds step() const { return kShapes[ring].step * group; }
  bool operator==(const Plan&) const = default;
};
// The finest ring that reaches back to `since`, and at most so many points, of which there are two
// at least. A ring that lacks less at the beginning than a step of the next one reaches back: the
// question took some time to come.
Plan plan(WallTime since, WallTime until, WallTime now, std::size_t most_points);

struct Point {
  WallTime begins;
  Entry entry;
};

class RangeReader {
 public:
  // `rings` outlives it; what changes in them meanwhile may be read or not.
  RangeReader(const Rings& rings, const Plan& plan, std::set<Subject> wanted)
      : rings_(rings), plan_(plan), wanted_(std::move(wanted)), at_(plan.first) {}

  // Looks at so many steps more. Whether there may be more behind them.
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
