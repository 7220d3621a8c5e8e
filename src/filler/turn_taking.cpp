#include "filler/turn_taking.h"

#include <algorithm>

namespace gpurota::filler {
namespace {

Why who_is_there(const Sight& sight, const Rules& rules, bool filler_is_on) {
  if (!sight.in_service) return Why::kOutOfService;
  if (sight.wanted) return Why::kWanted;
  if (sight.leased) return Why::kLeased;
  if (sight.foreign) return Why::kForeign;
  // While a filler is on, neither counts: the load is the filler's own, and hidden memory is no
  // reason to end a filler's lease.
  if (!filler_is_on && sight.hidden) return Why::kHidden;
  if (!filler_is_on && sight.load_percent >= rules.load_percent) return Why::kLoad;
  return Why::kNobody;
}

}  // namespace

const char* to_string(Why why) {
  switch (why) {
    case Why::kNobody:
      return "nobody";
    case Why::kOutOfService:
      return "out of service";
    case Why::kLeased:
      return "leased";
    case Why::kWanted:
      return "wanted";
    case Why::kForeign:
      return "foreign process";
    case Why::kHidden:
      return "hidden memory";
    case Why::kLoad:
      return "load";
    case Why::kPaused:
      return "paused";
    case Why::kRemoved:
      return "removed";
    case Why::kStayOver:
      return "another filler";
  }
  return "unknown";
}

const char* to_string(State state) {
  switch (state) {
    case State::kBusy:
      return "busy";
    case State::kFree:
      return "free";
    case State::kOn:
      return "on";
    case State::kLeaving:
      return "leaving";
    case State::kResting:
      return "resting";
  }
  return "unknown";
}

std::optional<TimePoint> TurnTaking::start_at() const {
  if (!idle_since_ || (state_ != State::kBusy && state_ != State::kResting)) {
    return std::nullopt;
  }
  const TimePoint idle = *idle_since_ + rules_.idle_after;
  return rest_until_ ? std::max(idle, *rest_until_) : idle;
}

bool TurnTaking::observe(const Sight& sight, TimePoint now) {
  const bool is_on = state_ == State::kOn || state_ == State::kLeaving;
  const Why there = who_is_there(sight, rules_, is_on);
  if (there != Why::kNobody) {
    // Load or memory that the last filler may have caused delays the next filler, but does not
    // reset the idle time.
    const bool lingers = there == Why::kHidden ||
                         (there == Why::kLoad && off_since_ && now - *off_since_ < kLoadLingers);
    if (!lingers) idle_since_.reset();
    if (state_ == State::kOn) return leave(there);
    if (state_ == State::kFree) state_ = State::kBusy;
    if (state_ != State::kLeaving) why_ = there;
    return false;
  }
  if (!idle_since_) idle_since_ = now;
  if (is_on) return false;
  why_ = Why::kNobody;
  const auto start = start_at();
  if (start && now >= *start) state_ = State::kFree;
  if (state_ == State::kResting && rest_until_ && now >= *rest_until_) state_ = State::kBusy;
  return false;
}

bool TurnTaking::leave(Why why) {
  state_ = State::kLeaving;
  why_ = why;
  return true;
}

void TurnTaking::on_started(TimePoint now) {
  if (state_ != State::kFree) return;
  moved_out_ = false;
  state_ = State::kOn;
  on_since_ = now;
  rest_until_.reset();
}

void TurnTaking::on_found(TimePoint now) {
  moved_out_ = false;
  state_ = State::kOn;
  on_since_ = now;
  rest_until_.reset();
}

void TurnTaking::on_gone(TimePoint now, bool had_to_leave) {
  if (!moved_out_) rest(now, had_to_leave);
  moved_out_ = false;
}

void TurnTaking::on_moved_out(TimePoint now) {
  rest(now, true);
  moved_out_ = true;
}

void TurnTaking::rest(TimePoint now, bool had_to_leave) {
  const bool was_long = on_since_ && now - *on_since_ >= rules_.good_stay;
  on_since_.reset();
  off_since_ = now;
  const bool by_order =
      had_to_leave && (why_ == Why::kPaused || why_ == Why::kRemoved || why_ == Why::kStayOver);
  // A filler that ends by itself shows nothing about the GPU: another one may run well there.
  const bool yielded = had_to_leave && !by_order;
  if (yielded) short_stays_ = was_long ? 0 : std::min(short_stays_ + 1, 30);
  Duration rest = std::max(rules_.idle_after, rules_.least_rest);
  for (int i = 1; yielded && i < short_stays_ && rest < rules_.longest_rest; ++i) rest *= 2;
  rest_until_ = now + std::min(rest, std::max(rules_.longest_rest, rules_.idle_after));
  if (by_order) rest_until_.reset();
  state_ = by_order ? State::kBusy : State::kResting;
  if (had_to_leave && why_ != Why::kStayOver) idle_since_.reset();
}

bool TurnTaking::dismiss(Why why) { return state_ == State::kOn && leave(why); }

}  // namespace gpurota::filler
