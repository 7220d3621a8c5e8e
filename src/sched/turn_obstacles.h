// What stands between a lease and its turn: memory that has no room, processes that cannot answer, others. A part of Turns.
#pragma once

#include "sched/turn_table.h"
#include "sched/turns_view.h"

namespace gpurota::sched {

class TurnObstacles {
 public:
  explicit TurnObstacles(const TurnTable& table) : table_(table) {}

  // Whether it could run if it had the turn.
  bool eligible(const LeaseState& lease) const;
  Wait hindrance(const LeaseState& lease) const;
  bool waits_for_memory(const LeaseState& lease) const;
  bool waits_for(const LeaseState& other, const LeaseState& holder) const;
  bool somebody_waits_for(const LeaseState& holder) const;
  // Of those that do not answer, who has most of what it needs. 0: nobody.
  TenantId has_most_of(const LeaseState& lease) const;
  // When the lease of one that does not answer, and has what this one needs, ends.
  std::optional<TimePoint> held_up_until(const LeaseState& lease) const;

 private:
  Wait hindrance(const LeaseState& lease, GpuSlot gpu) const;
  bool is_host_full(const Holding& own, GpuSlot gpu) const;

  const TurnTable& table_;
};

}  // namespace gpurota::sched
