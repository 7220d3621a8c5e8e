// What does not go as it should, and is reported, or ended: who does not yield, who has no room, who does not answer, and a GPU
// that holds more than its capacity. A part of Turns.
#pragma once

#include "sched/turn_obstacles.h"

namespace gpurota::sched {

// So long a lease may lack room before that is reported.
inline constexpr Duration kNoRoomLasts = std::chrono::seconds(2);

class TurnWatch {
 public:
  TurnWatch(TurnTable& table, const TurnObstacles& obstacles)
      : table_(table), obstacles_(obstacles) {}

  void look_at_excess();
  // What hinders the lease, if it waits for memory.
  void watch_room(LeaseState& lease, Wait obstacle);
  void watch_stopped(LeaseState& lease, Wait obstacle);
  // Of a lease that is leaving.
  void watch_deadline(LeaseState& lease);

 private:
  void look_at_excess(GpuSlot gpu);
  bool is_deadlocked(const LeaseState& lease) const;
  void refuse_growth(LeaseState& lease);

  TurnTable& table_;
  const TurnObstacles& obstacles_;
};

}  // namespace gpurota::sched
