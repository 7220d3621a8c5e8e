// The measured cost of moving memory, and its consequences: how long a turn is, and how long a
// pause must be before the turn is given up. Pure; used by Turns only.
#pragma once

#include "sched/model.h"

#include <array>

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
  // Until something was measured: PCIe 4, both ways.
  MoveCost();
  // One switch: both directions together.
  void measure(Bytes moved, Duration took);
  Duration estimate(Bytes moved) const;
  // So much says how fast memory moves; less, only what a switch costs beside that.
  static bool tells_rate(Bytes moved) { return moved >= kLeastForRate; }

 private:
  static constexpr Bytes kLeastForRate = mib(256);

  // The logarithm of bytes a second: one switch into host memory that is not ready yet, which takes
  // ten times as long, shall not make turns ten times as long.
  double log_rate_;
  Average overhead_;  // seconds, of switches that moved nearly nothing
};

// The turn after which moving, at `cost` a turn, takes no more than its share of the time.
Duration quantum_for(Duration cost, const Settings& settings);

// The pauses that a lease has made, by how long they were: the last few of each length, so that
// many short ones do not hide what becomes of one that is not over by then.
class Pauses {
 public:
  void add(Duration pause);
  // How long a holder may be idle before it is worth giving its turn to somebody else, when that
  // costs `price`: so long that most of the pauses that lasted as long went on for that; else as
  // long as the price, which is never worse than twice the best that could have been done.
  Duration before_release(Duration price, const Settings& settings) const;

 private:
  static constexpr std::size_t kScales = 17;  // each twice the one before; the last is five minutes
  // By the scale that they reached at least, and their own.
  std::array<std::array<double, kScales>, kScales> weights_{};
};

}  // namespace gpurota::sched
