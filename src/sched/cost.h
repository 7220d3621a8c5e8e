// The measured cost of moving memory, and its consequences: how long a turn is, and how long a
// pause must be before the turn is given up. Pure; used by Turns only.
#pragma once

#include "sched/model.h"

#include <array>

namespace gpurota::sched {

// An exponential moving average. Unknown before the first value.
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
  // Before the first measurement: the speed of PCIe 4, both directions together.
  MoveCost();
  // Adds one switch. `moved` is the sum of both directions.
  void measure(Bytes moved, Duration took);
  Duration estimate(Bytes moved) const;
  // Whether a switch of this many bytes shows how fast memory moves. A smaller switch shows only
  // the fixed cost.
  static bool tells_rate(Bytes moved) { return moved >= kLeastForRate; }

 private:
  static constexpr Bytes kLeastForRate = mib(256);

  // The logarithm of the bytes per second. A switch takes ten times as long if host memory is not
  // ready yet. Logarithms are averaged, so that one such switch does not make turns ten times as
  // long.
  double log_rate_;
  Average overhead_;  // seconds, of switches that moved nearly nothing
};

// The turn length with which moving takes Settings::moving_share of all time, if moving for each
// turn takes `cost`. Clamped to the least and the most quantum.
Duration quantum_for(Duration cost, const Settings& settings);

// How long the pauses of a lease lasted once they had reached a given length. Recent pauses count
// most. Each length is counted by itself, so that many short pauses do not hide how long the longer
// pauses last.
class Pauses {
 public:
  void add(Duration pause);
  // How long a holder may be idle before its turn is given to another lease. `price`: the time that
  // giving the turn away costs.
  //
  // The result is a time t below `price` after which a pause is likely to last for at least `price`
  // more: of the earlier pauses of t or longer, at least half lasted t + price or longer. The
  // shortest such t is taken. If there is no such t, the result is `price`: waiting that long costs
  // at most twice the optimum (ski rental). The result is never less than Settings::idle_release.
  Duration before_release(Duration price, const Settings& settings) const;

 private:
  static constexpr std::size_t kScales = 17;  // each is twice the previous; the last: five minutes
  // weights_[a][b]: pauses that reached scale a and ended in scale b.
  std::array<std::array<double, kScales>, kScales> weights_{};
};

}  // namespace gpurota::sched
