// What is kept of time: when turns begin and end on a GPU, who has had how much, who wants a turn, and budgets of priorities.
// A part of Turns.
#pragma once

#include "sched/turn_length.h"

namespace gpurota::sched {

class TurnClocks {
 public:
  TurnClocks(TurnTable& table, const TurnOrder& order, const TurnLength& length)
      : table_(table), order_(order), length_(length) {}

  void look_at_contention();
  void look_at_wishes();
  void look_at_budgets();
  void look_at_spent_budgets();
  void stop_clock(LeaseState& lease);

 private:
  void begin_contention(GpuSlot gpu);
  void keep_clocks();
  void keep_pauses(LeaseState& lease);
  void join_line(LeaseState& lease);
  std::optional<double> least_served(const LeaseState& besides) const;

  TurnTable& table_;
  const TurnOrder& order_;
  const TurnLength& length_;
};

}  // namespace gpurota::sched
