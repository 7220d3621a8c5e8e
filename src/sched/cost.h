// What moving memory costs, as measured, and what follows from it: how long a turn is and how long a
// pause must be before the turn is given up. Pure; used by Turns only.
#pragma once

#include "sched/model.h"

namespace gpurota::sched {

// An average that follows what is measured; empty until then.
class Average {
 public:
  void add(double value) {
    value_ = known_ ? value_ + (value - value_) * 0.3 : value;
    known_ = true;
  }
  bool known() const { return known_; }
  double value() const { return value_; }

 private:
  bool known_ = false;
  double value_ = 0;
};

// How fast one GPU changes hands.
class MoveCost {
 public:
  // One switch: both directions together.
  void measure(Bytes moved, Duration took);
  Duration estimate(Bytes moved) const;

 private:
  // Until something was measured: slower than any bus that is left in use, so that the first turns
  // are rather too long than too short.
  static constexpr double kFirstRate = 16.0 * 1024 * 1024 * 1024;
  static constexpr Bytes kLeastForRate = mib(256);

  Average rate_;      // bytes a second
  Average overhead_;  // seconds, of switches that moved nearly nothing
};

// The turn after which moving, at `cost` a turn, takes no more than its share of the time.
Duration quantum_for(Duration cost, const Settings& settings);

// How long a holder may be idle before it is worth giving its turn to somebody else, when that and
// coming back cost `round_trip`. `pauses` are those that it has made before (seconds). Pauses known to
// outlast the round trip are acted on at once; else the pause has to last as long as the round
// trip costs, which is never worse than twice the best that could have been done.
Duration pause_before_release(Duration round_trip, const Average& pauses, const Settings& settings);

}  // namespace gpurota::sched
