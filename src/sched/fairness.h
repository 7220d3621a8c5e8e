// Chooses the next turn among the leases that wait: weighted fair by the time that each has run,
// and bounded in how much of the time higher priorities may take. Pure; used by Turns only.
#pragma once

#include "sched/model.h"

namespace gpurota::sched {

// The time a lease has had turns for, in seconds by weight. The least goes first.
//
// Nobody saves up: a lease that comes back from a pause starts beside those that are waiting. And
// nobody is punished for long: what a lease had because its GPUs were free anyway counts against it
// up to a window only.
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

// Time that higher priorities may still take from lower ones on one GPU: filled with their share of
// all time, drained while one of them holds back somebody lower. Used up, priorities count for
// nothing until half of it is back.
class PriorityBudget {
 public:
  void set(double share, Duration burst);
  void advance(TimePoint now, bool draining);
  bool spent() const { return spent_; }
  // When it will be used up (draining) or usable again (not).
  TimePoint turns_at(bool draining) const;

 private:
  double share_ = 0.5;
  double burst_ = 10;
  double left_ = 10;
  bool spent_ = false;
  TimePoint at_{};
};

}  // namespace gpurota::sched
