#include "series/range.h"

#include <algorithm>

namespace gpurota::series {

Plan plan(WallTime since, WallTime until, WallTime now, std::size_t most_points) {
  Plan plan;
  until = std::min(until, now);
  const auto reaches = [&](std::size_t ring) {
    const Shape& shape = kShapes[ring];
    return since > now - shape.step * shape.rows - kShapes[ring + 1].step;
  };
  while (plan.ring + 1 < kShapes.size() && !reaches(plan.ring)) ++plan.ring;
  const Shape& shape = kShapes[plan.ring];
  const std::int64_t oldest = step_of(now, shape.step) - shape.rows + 1;
  plan.first = std::max(step_of(since, shape.step), oldest);
  plan.end = std::max(plan.first, step_of(until, shape.step) + 1);
  // Points begin at multiples of their length. So the first point may have fewer steps than the
  // others, and there may be one more point than the division gives.
  const auto most = static_cast<std::int64_t>(std::max<std::size_t>(most_points, 2));
  const std::int64_t steps = plan.end - plan.first;
  if (steps > most) plan.group = (steps + most - 2) / (most - 1);
  return plan;
}

bool RangeReader::go_on(std::int64_t steps) {
  const std::int64_t end = std::min(plan_.end, at_ + steps);
  for (; at_ < end; ++at_) {
    if (at_ % plan_.group == 0) finish_point();
    const std::string* const row = rings_.find(plan_.ring, at_);
    if (!row) continue;
    for (const Entry& each :
         decode(*row, [&](const Subject& subject) { return wanted_.contains(subject); })) {
      merger_.add(each);
    }
  }
  if (at_ < plan_.end) return true;
  finish_point();
  return false;
}

// Finishes the point of the steps read so far, those before `at_`.
void RangeReader::finish_point() {
  if (merger_.empty()) return;
  const std::int64_t number = (at_ - 1) / plan_.group;
  const WallTime begins(std::chrono::duration_cast<WallTime::duration>(plan_.step() * number));
  for (const Entry& each : merger_.take(static_cast<std::uint32_t>(plan_.step().count()))) {
    points_[each.subject].push_back({begins, each});
  }
}

const std::vector<Point>& RangeReader::points(const Subject& subject) const {
  static const std::vector<Point> kEmpty;
  const auto at = points_.find(subject);
  return at == points_.end() ? kEmpty : at->second;
}

}  // namespace gpurota::series
