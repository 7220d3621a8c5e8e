// What becomes of the table by an event. Nothing is decided here but whether a growth is admitted. A part of Turns.
#pragma once

#include "sched/turn_phases.h"

namespace gpurota::sched {

class TurnEvents {
 public:
  TurnEvents(TurnTable& table, TurnPhases& phases, TurnClocks& clocks)
      : table_(table), phases_(phases), clocks_(clocks) {}

  void on(const AddTenant& event);
  void on(const TenantDied& event);
  void on(const RemoveTenant& event);
  void on(const Reachable& event);
  void on(const TenantStatus& event);
  void on(const Grow& event);
  void on(const Shrink& event);
  void on(const Measured& event);
  void on(const Evicted& event);
  void on(const Restored& event);
  void on(const Tick&) {}
  // After the hold: everybody who was there is known by now.
  void judge_what_was_asked_on_hold();

 private:
  void pay(MoveDebt& debt, Bytes moved);
  // Of an order to evict something was reported.
  void settle_order(const Evicted& event, GpuSlot gpu, Bytes moved, bool ended);
  void grow_hosted(const Grow& event, GpuSlot gpu, Bytes most);

  TurnTable& table_;
  TurnPhases& phases_;
  TurnClocks& clocks_;
};

}  // namespace gpurota::sched
