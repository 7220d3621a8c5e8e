// Who goes before whom: soft limits, priorities within their budgets, then who has had less. A part of Turns.
#pragma once

#include "sched/turn_table.h"

namespace gpurota::sched {

class TurnOrder {
 public:
  explicit TurnOrder(const TurnTable& table) : table_(table) {}

  bool is_above_soft(const LeaseState& lease) const;
  // A lease above its soft limit stands behind all that are not, and there by its priority.
  static int rank(const LeaseState& lease);
  // While the budget of one of its GPUs is spent, a priority is the lowest that anybody has.
  int effective_priority(const LeaseState& lease) const;
  bool goes_before(const LeaseState& a, const LeaseState& b) const;
  // Of two that hold the same GPU.
  bool claims_more(const LeaseState& a, const LeaseState& b, GpuSlot gpu) const;

 private:
  const TurnTable& table_;
};

}  // namespace gpurota::sched
