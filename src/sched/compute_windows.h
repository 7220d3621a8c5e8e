// Divides the compute time of one GPU between parties that have shares, by windows: while two or
// more parties want the GPU, one of them has it to itself for a few milliseconds, then another.
//
// A party is charged for the time from its first work in a window until its work has ended, so work
// that lasts longer than the window makes the party's next window come later. If that work runs
// beside the next window, both parties are charged for an equal part of the time, as the driver
// divides it. The next window goes to the party that has had the least in proportion to its share.
// While at most one party wants the GPU, or none of those that want it has a share, all windows are
// open and nothing is charged.
//
// A party can have an upper bound. Its window is closed while it has had as much as the bound
// allows, whether others want the GPU or not. Outside windows, the time in which it has work
// counts. Time that nobody has seen, because step() was not called, counts as kMostSeen.
//
// Pure: the same calls at the same times give the same windows.
#pragma once

#include "core/time.h"
#include "sched/compute_bound.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace gpurota::sched {

class ComputeWindows {
 public:
  // A window lasts for its party's part of kCycle, within these bounds.
  static constexpr Duration kCycle = std::chrono::milliseconds(28);
  static constexpr Duration kLeast = std::chrono::milliseconds(5);
  static constexpr Duration kMost = std::chrono::milliseconds(20);
  // A party that has had nothing to do for this long does not want the GPU. Programs have short
  // pauses between two pieces of work.
  static constexpr Duration kPause = std::chrono::milliseconds(2);
  // How long the next window waits for the work of the window before. A program may never say that
  // its work has ended. Until its work ends, for at most kMostLate, a party is charged even while
  // later windows run. Work that has not ended after kMostLate is taken for work without an end,
  // and is not waited for until it ends.
  static constexpr Duration kLongestEnd = std::chrono::milliseconds(30);
  static constexpr Duration kMostLate = std::chrono::seconds(5);
  // A window ends early for a party that has had this much less than the holder, each in proportion
  // to its share: a program with pauses gets its share although its windows are short.
  static constexpr Duration kMuchLess = std::chrono::milliseconds(10);
  // The longest time for which a state counts that was seen at its end.
  static constexpr Duration kMostSeen = std::chrono::milliseconds(250);
  // The most that a party can be owed or can owe.
  static constexpr Duration kMostDebt = std::chrono::milliseconds(500);

  struct Party {
    std::uint64_t id = 0;
    int percent = 0;    // above 0; only the ratio between the parties counts
    bool share = true;  // that part is promised to it; between parties without, nobody waits
    int most = 0;       // the upper bound in percent; 0: none
    bool operator==(const Party&) const = default;
  };
  struct State {
    bool busy = false;   // it has work on the GPU that has not ended
    bool waits = false;  // a submission waits for its window
  };

  // Replaces the parties. Those that stay keep what they owe.
  void set_parties(std::span<const Party> parties);
  const std::vector<Party>& parties() const { return parties_; }

  // Decides again. `states`: of the parties, in their order. Returns when to ask again at the
  // latest if no state changes; nothing: only when a state changes.
  std::optional<TimePoint> step(TimePoint now, std::span<const State> states);
  // Whether the party with this index may submit work.
  bool is_open(std::size_t index) const {
    if (is_bounded(index)) return books_[index].bound.lets_pass();
    return !holder_ || (holder_ == index && !ending_);
  }
  // Whether the party has had as much as its upper bound allows.
  bool is_bounded(std::size_t index) const { return books_[index].bound.is_reached(); }
  // The books of a party's upper bound, which a lease keeps while it is not a party.
  const ComputeBound& bound(std::size_t index) const { return books_[index].bound; }
  void set_bound(std::size_t index, const ComputeBound& bound);
  // Whether a party has an upper bound.
  bool has_bounds() const;
  // The party that has the window, or whose work has not ended since; nothing: all are open.
  std::optional<std::size_t> holder() const { return holder_; }
  // Whether windows are used at the moment.
  bool divides() const { return holder_.has_value(); }
  // Whether a window waits for the end of its work, or for its first work, so that a change of the
  // states is worth knowing at once.
  bool is_changing() const { return holder_ && (ending_ || !begun_working_); }
  // The time for which the party was charged so far.
  Duration charged(std::size_t index) const { return books_[index].charged; }

 private:
  struct Books {
    TimePoint wanted;  // when it last wanted the GPU
    TimePoint opened;  // when its last window began
    Duration debt{};   // above 0: it has had more than its share
    Duration charged{};
    ComputeBound bound;
    bool busy = false;  // at the last step
    bool late = false;  // its work runs beside the window of another party
    // Since when it has had work without a break, from the end of a window on; empty: no such work.
    std::optional<TimePoint> unended;
  };

  bool wants(std::size_t index, TimePoint now) const;
  // The party wants the GPU, and may have it.
  bool competes(std::size_t index, TimePoint now) const;
  bool needs_windows(TimePoint now) const;
  void count_bounds(TimePoint now, std::span<const State> states);
  std::optional<TimePoint> next_bound(TimePoint now) const;
  bool is_endless(std::size_t index, TimePoint now) const;
  std::size_t next(TimePoint now) const;
  Duration length(std::size_t index, TimePoint now) const;
  void charge(std::size_t index, Duration time, TimePoint now);
  void settle(TimePoint until, TimePoint now);
  bool is_over(TimePoint now) const;
  void open(std::size_t index, TimePoint now);
  void stop(TimePoint now);
  void step_window(TimePoint now, std::span<const State> states);
  void pass_on(TimePoint now, std::span<const State> states);

  std::vector<Party> parties_;
  std::vector<Books> books_;           // of the parties
  std::optional<std::size_t> holder_;  // the party that has the window
  TimePoint stepped_;                  // the last call of step()
  TimePoint settled_;                  // up to when the holder has been charged
  TimePoint begun_;                    // when the window began
  bool begun_working_ = false;         // the holder has had work in its window, or kPause to begin
  TimePoint until_;                    // the end of the window
  std::optional<TimePoint> ending_;    // since when the window waits for the end of its work
  std::optional<TimePoint> stopped_;   // when the last window ended without a next one
};

}  // namespace gpurota::sched
