// Who is next, and who has to make way. A part of Turns.
#pragma once

#include "sched/turn_phases.h"

namespace gpurota::sched {

class TurnChoice {
 public:
  TurnChoice(TurnTable& table, const TurnOrder& order, const TurnLength& length,
             const TurnObstacles& obstacles, TurnPhases& phases)
      : table_(table), order_(order), length_(length), obstacles_(obstacles), phases_(phases) {}

  void resolve_conflicts();
  void choose();
  void renew_quanta();

 private:
  struct Reservation {
    LeaseId lease;
    TimePoint until;  // when its holders will have had their quantum
  };
  void choose_for(LeaseState& lease, std::map<GpuSlot, Reservation>& reserved);
  bool yields(const LeaseState& holder, const LeaseState& to) const;
  bool may_backfill(const LeaseState& lease, const std::map<GpuSlot, Reservation>& reserved) const;
  std::vector<LeaseState*> waiting_in_order();

  TurnTable& table_;
  const TurnOrder& order_;
  const TurnLength& length_;
  const TurnObstacles& obstacles_;
  TurnPhases& phases_;
};

}  // namespace gpurota::sched
