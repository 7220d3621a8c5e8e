// How a filler gets off a GPU: whether it is moved out and keeps its state, or ended; and whether
// moving it goes on as it should. The daemon asks and carries out
// (daemon/supervised/filler_moves.cpp). Pure.
#pragma once

#include "base/bytes.h"
#include "core/time.h"
#include "filler/turn_taking.h"

#include <chrono>
#include <optional>
#include <string>

namespace gpurota::filler {

// kStop: the default, whatever else is said. kEvict: moved out, if it can be.
enum class OnYield { kStop, kEvict };

struct Yielding {
  OnYield wish = OnYield::kStop;
  Why why = Why::kNobody;
  bool can_be_moved = false;   // it has its lease, and that takes turns
  bool host_has_room = false;  // for all that it has
};
struct WayOut {
  OnYield how = OnYield::kStop;
  std::string because;  // why it is ended although it was to be moved out; empty: it was not
};
WayOut way_out(const Yielding& yielding);

// One that is being moved out. observe() is called whenever something of it may have changed.
//
//     draining ─gate shut, work done→ moving ─nothing of it left→ settling ─driver agrees→ out
class Eviction {
 public:
  struct Rules {
    Duration drain{std::chrono::seconds(2)};   // for its work to end: the filler's grace
    Duration stall{std::chrono::seconds(15)};  // as long as it may move nothing
    Duration settle{std::chrono::seconds(1)};  // as long as the driver may count more than is left
  };
  struct Sight {
    bool on_hold = false;          // nobody is told anything: a daemon that has just started
    bool silent = false;           // a process of it is stopped, or not connected
    bool drained = false;          // its gate is shut and its work done
    Bytes left;                    // of what can be moved, on the GPU or on its way there
    Bytes stays;                   // what cannot be moved, as it has told
    std::optional<Bytes> counted;  // what the driver counted of it...
    TimePoint taken{};             // ...in a sample that began then
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
  TimePoint since_;  // of what it is doing: draining, or the last progress
  TimePoint next_{};
  std::optional<Bytes> left_;           // at the last observe(); empty: it still drains
  std::optional<TimePoint> out_since_;  // nothing is left
  Bytes stays_;
  std::string problem_;
};

// A little more than was told: what modules and local memory take is learned by looks.
inline constexpr Bytes kUnreportedNoise = mib(64);

}  // namespace gpurota::filler
