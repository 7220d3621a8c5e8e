// How long others have waited for what a lease was told to do, and what follows from that. A part
// of Turns.
//
// A tenant owes two things: the end of its work once its gate is shut, and the moves that it was
// ordered to make. The time in which it owes them counts only while another lease waits, while the
// tenant can answer (a stopped one has a bound of its own: TurnWatch::watch_stopped), and while the
// scheduler itself runs: no look adds more than kMostStep, so a machine that was suspended, or a
// daemon that was stopped, ends nobody.
#pragma once

#include "sched/turn_obstacles.h"

namespace gpurota::sched {

class TurnDebts {
 public:
  TurnDebts(TurnTable& table, const TurnObstacles& obstacles)
      : table_(table), obstacles_(obstacles) {}

  // Counts what has passed since the last event. Before an event changes anything.
  void advance(TimePoint now);
  // A lease with half of the bound behind it is reported, one with all of it ends.
  void watch(LeaseState& lease);

 private:
  bool drains_for_others(const LeaseState& lease) const;
  void count(LeaseState& lease, Duration step);

  TurnTable& table_;
  const TurnObstacles& obstacles_;
};

}  // namespace gpurota::sched
