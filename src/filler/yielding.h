// How a filler leaves a GPU: whether it is moved out and keeps its state, or is ended; and whether
// a move makes progress. The daemon carries the decisions out (daemon/supervised/filler_moves.cpp).
// Pure.
#pragma once

#include "base/bytes.h"
#include "core/time.h"
#include "filler/turn_taking.h"

#include <chrono>
#include <optional>
#include <string>

namespace gpurota::filler {

// kStop: end it, the default. kEvict: move it out if possible.
enum class OnYield { kStop, kEvict };

struct Yielding {
  OnYield wish = OnYield::kStop;
  Why why = Why::kNobody;
  bool can_be_moved = false;   // it has its lease, which takes turns
  bool host_has_room = false;  // for all its memory
};
struct WayOut {
  OnYield how = OnYield::kStop;
  std::string because;  // why the filler is ended, not moved out; empty: no move was wanted
};
WayOut way_out(const Yielding& yielding);

// A filler that is being moved out. Call observe() whenever something about it may have changed.
//
//     draining ─gate shut, work done→ moving ─nothing of it left→ settling ─driver agrees→ out
class Eviction {
 public:
  struct Rules {
    Duration drain{std::chrono::seconds(2)};   // for its work to end: the filler's grace
    Duration stall{std::chrono::seconds(15)};  // the longest time without progress
    Duration settle{std::chrono::seconds(1)};  // how long the driver may count more than is left
  };
  struct Sight {
    bool on_hold = false;          // a daemon that has just started gives no orders yet
    bool silent = false;           // one of its processes is stopped, or not connected
    bool drained = false;          // its gate is shut and its work done
    Bytes left;                    // of what can be moved, on the GPU or on its way there
    Bytes stays;                   // what cannot be moved, as the filler reports
    std::optional<Bytes> counted;  // its memory by the driver's last sample
    TimePoint taken{};             // when that sample began
  };
  enum class Step { kGoing, kOut, kFailed };

  Eviction(const Rules& rules, TimePoint now) : rules_(rules), since_(now) {}

  Step observe(const Sight& sight, TimePoint now);
  // When to call observe() again if nothing happens.
  TimePoint next() const { return next_; }
  // Whether the eviction waits only for a sample of the GPU.
  bool wants_sample() const { return out_since_.has_value(); }
  // After kFailed: "its work did not end within 2 s".
  const std::string& problem() const { return problem_; }
  // After kOut: what stays on the GPU.
  Bytes stays() const { return stays_; }

 private:
  Step fail(std::string problem);

  Rules rules_;
  TimePoint since_;  // start of draining, or the last progress
  TimePoint next_{};
  std::optional<Bytes> left_;           // at the last observe(); empty: still draining
  std::optional<TimePoint> out_since_;  // since when nothing that can be moved is left
  Bytes stays_;
  std::string problem_;
};

// How much more than the reported memory the driver may count: modules and local memory are not
// reported, only sampled.
inline constexpr Bytes kUnreportedNoise = mib(64);

}  // namespace gpurota::filler
