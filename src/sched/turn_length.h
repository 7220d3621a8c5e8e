// How long a turn lasts: its quantum, from what moving costs, and how long a holder may be idle. A part of Turns.
#pragma once

#include "sched/turn_order.h"

namespace gpurota::sched {

class TurnLength {
 public:
  TurnLength(const TurnTable& table, const TurnOrder& order) : table_(table), order_(order) {}

  Duration quantum(const LeaseState& lease) const;
  // What moving takes that makes room for the lease and brings its memory back.
  Duration move_estimate(const LeaseState& lease) const;
  bool is_idle_enough(const LeaseState& holder, const LeaseState& to) const;
  Duration idle_before_release(const LeaseState& holder, const LeaseState& to) const;

 private:
  std::optional<Duration> quantum_as_set(const LeaseState& lease) const;
  Duration turn_cost(const LeaseState& lease) const;

  const TurnTable& table_;
  const TurnOrder& order_;
};

}  // namespace gpurota::sched
