// When a filler may be on a GPU, and when it must be gone: a program that uses what nobody needs.
// One of these for each GPU that fillers may use; the daemon shows it what it sees there, at least
// every kSampleEvery while a filler is on, and at once when a lease is wanted. Pure.
//
//     busy ─nobody there for the idle time→ free ─start→ on ─somebody comes→ leaving ─gone→ resting …
//
// One that is moved out of the GPU instead of being ended is gone in the same sense, and its coming
// back is a start.
//
// A filler never flaps: after it had to leave it rests, longer each time it had to leave soon after
// its start, and the idle time counts from the last moment that anybody was there.
#pragma once

#include "core/time.h"

#include <chrono>
#include <optional>

namespace gpurota::filler {

// Off the GPU within 100 ms of a foreign process's appearance needs to see it in time.
inline constexpr Duration kSampleEvery = std::chrono::milliseconds(25);

// The load that NVML tells is that of its last sample period, 1/6 s to 1 s (nvmlUtilization_t); a
// sample may show the period before. For so long after a filler has gone it may still be that
// filler's own.
inline constexpr Duration kLoadLingers = std::chrono::seconds(2);

struct Rules {
  Duration idle_after = std::chrono::seconds(30);
  int load_percent = 10;  // from here on somebody is there, without a process that we could see
  // A filler that was on for less than this, and had to leave, rests twice as long the next time.
  Duration good_stay = std::chrono::minutes(5);
  Duration longest_rest = std::chrono::minutes(15);
  Duration least_rest = std::chrono::seconds(1);  // however short the idle time is
};

// The state of the GPU as seen by the daemon. Desktop and ignored processes, fillers and what they
// start are not foreign.
struct Sight {
  bool in_service = true;  // can be seen and used
  bool leased = false;     // a lease that is no filler's has it
  bool wanted = false;     // somebody's turn for it has come, or it is kept for somebody
  bool foreign = false;    // a process of nobody's lease is on it
  bool hidden = false;     // much memory is in use that no listed process has; as load_percent
  int load_percent = 0;    // meaningful only while no filler is on
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
  // Why it is not on, or has to leave.
  Why why() const { return why_; }
  // When a filler may start if all stays as it is; only in kBusy and kResting, and only if it can.
  std::optional<TimePoint> start_at() const;
  // How long nobody has been there, as far as it is known.
  Duration idle_for(TimePoint now) const { return idle_since_ ? now - *idle_since_ : Duration(0); }

  // True if the filler must leave now. The answer is true once; the daemon ends or moves the filler
  // and calls on_gone().
  bool observe(const Sight& sight, TimePoint now);
  // A filler has been started (only in kFree).
  void on_started(TimePoint now);
  // One is on that an earlier daemon started.
  void on_found(TimePoint now);
  // The filler is off the GPU, and so is its memory; it had to leave, ended by itself or never
  // started.
  void on_gone(TimePoint now, bool had_to_leave);
  // The filler is off the GPU and has not ended; its end before the next start changes nothing.
  void on_moved_out(TimePoint now);
  // Its owner or an administrator pauses or removes the filler that is on, or another one's turn
  // has come (kStayOver: that one may start as soon as it is gone). True if it must leave now.
  bool dismiss(Why why);

 private:
  bool leave(Why why);
  void rest(TimePoint now, bool had_to_leave);

  Rules rules_;
  State state_ = State::kBusy;
  Why why_ = Why::kNobody;
  std::optional<TimePoint> idle_since_;  // nobody has been seen since; empty: somebody is there
  std::optional<TimePoint> on_since_;
  std::optional<TimePoint> off_since_;  // when the last one went
  std::optional<TimePoint> rest_until_;
  int short_stays_ = 0;  // in a row
  bool moved_out_ = false;
};

}  // namespace gpurota::filler
