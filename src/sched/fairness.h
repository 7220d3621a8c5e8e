// The clocks by which the next turn is chosen: leases share the time fairly, by weight, and the
// time that higher priorities may take is bounded. Pure; used by Turns only.
#pragma once

#include "sched/model.h"

namespace gpurota::sched {

// The time for which a lease has had turns, in seconds divided by its weight. The lease with the
// least goes first.
//
// A pause earns no credit: when a lease comes back, catch_up() sets its clock level with the
// waiting leases. Time in which nobody else could use the GPUs of a lease counts against the lease
// only up to a window (hold_back()).
class FairClock {
 public:
  void start(TimePoint now) { since_ = now, running_ = true; }
  void stop(TimePoint now, unsigned weight);
  bool running() const { return running_; }
  double read(TimePoint now, unsigned weight) const;
  void catch_up(double least) { value_ = value_ < least ? least : value_; }
  void hold_back(double most) { value_ = value_ > most ? most : value_; }

 private:
  double value_ = 0;
  TimePoint since_{};
  bool running_ = false;
};

// The time that higher priorities may still take from lower ones on one GPU (a token bucket). The
// budget fills with their share of all time, and drains while a lease of higher priority keeps a
// lease of lower priority waiting. Once the budget is spent, priorities count for nothing until it
// is half full again.
class PriorityBudget {
 public:
  void set(double share, Duration burst);
  void advance(TimePoint now, bool draining);
  bool spent() const { return spent_; }
  // When the budget will be spent if `draining`, or, once it is spent, when it will be usable
  // again. TimePoint::max(): neither.
  TimePoint turns_at(bool draining) const;

 private:
  double share_ = 0.5;
  double burst_ = 10;
  double left_ = 10;
  bool spent_ = false;
  TimePoint at_{};
};

}  // namespace gpurota::sched
