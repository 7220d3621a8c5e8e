// Reads the table: who holds, who waits and for what, and when something comes due. A part of Turns.
#pragma once

#include "sched/turn_length.h"
#include "sched/turn_obstacles.h"

namespace gpurota::sched {

class TurnReader {
 public:
  explicit TurnReader(const TurnTable& table)
      : table_(table), order_(table), length_(table, order_), obstacles_(table) {}

  std::optional<LeaseView> explain(LeaseId lease, TimePoint now) const;
  std::optional<LeaseTurn> turn_of(LeaseId lease) const;
  std::vector<GpuView> view() const;
  std::optional<TimePoint> next_deadline() const;

 private:
  Wait wait_of(const LeaseState& lease) const;
  // When to look again at what it owes.
  Duration owed_step(const LeaseState& lease) const;
  // Until it is reported that it does not yield.
  Duration yield_left(const LeaseState& lease) const;
  // When `holder` has to make way for `waiting` at the latest; TimePoint::max(): never, while it has work.
  TimePoint end_of_turn(const LeaseState& holder, const LeaseState& waiting) const;

  const TurnTable& table_;
  TurnOrder order_;
  TurnLength length_;
  TurnObstacles obstacles_;
};

}  // namespace gpurota::sched
