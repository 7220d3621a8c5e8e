// From one phase of a lease into the next: gates, draining, what a switch took. A part of Turns.
#pragma once

#include "sched/turn_clocks.h"
#include "sched/turn_obstacles.h"

namespace gpurota::sched {

class TurnPhases {
 public:
  TurnPhases(TurnTable& table, const TurnObstacles& obstacles, TurnClocks& clocks)
      : table_(table), obstacles_(obstacles), clocks_(clocks) {}

  void enter(LeaseState& lease, bool backfill);
  void abandon_entering(LeaseState& lease);
  void finish_entering(LeaseState& lease);
  void close(LeaseState& lease);
  void finish_leaving(LeaseState& lease);
  void leave_aside();
  void open_resident(LeaseState& lease);
  void let_through(LeaseState& lease);
  void set_gate(TenantId id, GateOrder order);

 private:
  void reopen(LeaseState& lease);
  bool measure_move(const LeaseState& lease);
  bool has_moved(const LeaseState& lease) const;
  void record_switch(LeaseState& lease);

  TurnTable& table_;
  const TurnObstacles& obstacles_;
  TurnClocks& clocks_;
};

}  // namespace gpurota::sched
