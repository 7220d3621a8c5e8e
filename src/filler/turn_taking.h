// When a filler may be on a GPU, and when it must leave. A filler is a program that uses what
// nobody needs. There is one TurnTaking for each GPU that fillers may use. The daemon passes it the
// state of the GPU: at least every kSampleEvery while a filler is on, and at once when somebody
// wants a lease. Pure.
//
//     busy ─nobody for the idle time→ free ─start→ on ─somebody comes→ leaving ─gone→ resting …
//
// A filler that is moved out of the GPU instead of being ended counts as gone, and its return
// counts as a start.
//
// A filler never flaps. After it had to leave, it rests, and longer each time that it had to leave
// soon after its start. The idle time counts from the last moment that anybody was there.
#pragma once

#include "core/time.h"

#include <chrono>
#include <optional>

namespace gpurota::filler {

// A filler must leave within 100 ms of a foreign process's start, so the sample must come in time.
inline constexpr Duration kSampleEvery = std::chrono::milliseconds(25);

// NVML reports the load of its last sample period, 1/6 s to 1 s (nvmlUtilization_t), and a sample
// may show the period before. For this long after a filler has left, the load may be that filler's
// own.
inline constexpr Duration kLoadLingers = std::chrono::seconds(2);

struct Rules {
  Duration idle_after = std::chrono::seconds(30);
  int load_percent = 10;  // with this load the GPU counts as used, even without a visible process
  // A filler that was on for less than this, and had to leave, rests twice as long the next time.
  Duration good_stay = std::chrono::minutes(5);
  Duration longest_rest = std::chrono::minutes(15);
  Duration least_rest = std::chrono::seconds(1);  // also if `idle_after` is shorter
};

// The state of the GPU as seen by the daemon. Not foreign: desktop and ignored processes, fillers
// and the processes that fillers start.
struct Sight {
  bool in_service = true;  // NVML answers for the GPU, and the GPU may be used
  bool leased = false;     // a lease other than a filler's has the GPU
  bool wanted = false;     // a request's turn has come, or the GPU is kept for a request
  bool foreign = false;    // a process of no lease is on the GPU
  bool hidden = false;     // much memory that no listed process has; only while no filler is on
  int load_percent = 0;    // only while no filler is on
};

enum class Why {
  kNobody,
  kOutOfService,
  kLeased,
  kWanted,
  kForeign,
  kHidden,
  kLoad,
  kPaused,
  kRemoved,
  kStayOver
};
const char* to_string(Why why);  // "leased", "foreign process", …

enum class State { kBusy, kFree, kOn, kLeaving, kResting };
const char* to_string(State state);

class TurnTaking {
 public:
  explicit TurnTaking(Rules rules) : rules_(rules) {}

  // In effect from the next call of observe() on.
  void set_rules(Rules rules) { rules_ = rules; }

  State state() const { return state_; }
  // Why no filler is on, or why the one that is on has to leave.
  Why why() const { return why_; }
  // When a filler may start if nothing changes; only in kBusy and kResting, and only if it can.
  std::optional<TimePoint> start_at() const;
  // How long the GPU has been seen idle.
  Duration idle_for(TimePoint now) const { return idle_since_ ? now - *idle_since_ : Duration(0); }

  // Call with each sample. Returns true once when the filler must leave now. The daemon then ends
  // or moves the filler and calls on_gone() or on_moved_out().
  bool observe(const Sight& sight, TimePoint now);
  // Call when a filler has been started (only in kFree).
  void on_started(TimePoint now);
  // Call when a filler is on that an earlier daemon started.
  void on_found(TimePoint now);
  // Call when the filler and its memory are off the GPU. `had_to_leave`: false if it ended by
  // itself or never started.
  void on_gone(TimePoint now, bool had_to_leave);
  // Call when the filler is off the GPU and has not ended. If the filler ends before its next
  // start, that changes nothing.
  void on_moved_out(TimePoint now);
  // Makes the present filler leave, because its owner or an administrator pauses or removes it, or
  // because it is another filler's turn (kStayOver: the other filler may start as soon as the
  // present one has left). Returns true if the filler must leave now.
  bool dismiss(Why why);

 private:
  bool leave(Why why);
  void rest(TimePoint now, bool had_to_leave);

  Rules rules_;
  State state_ = State::kBusy;
  Why why_ = Why::kNobody;
  std::optional<TimePoint> idle_since_;  // the GPU has been idle since; empty: it is not idle
  std::optional<TimePoint> on_since_;
  std::optional<TimePoint> off_since_;  // when the last filler left
  std::optional<TimePoint> rest_until_;
  int short_stays_ = 0;  // in a row
  bool moved_out_ = false;
};

}  // namespace gpurota::filler
