#include "filler/yielding.h"

#include <algorithm>

namespace gpurota::filler {

WayOut way_out(const Yielding& yielding) {
  if (yielding.wish == OnYield::kStop) return {};
  // A removed filler need not keep its state. A filler that leaves for another filler is ended, not
  // moved out: a GPU has only one filler, and a filler that is moved out still counts. On a GPU out
  // of service a filler is always ended.
  if (yielding.why == Why::kRemoved || yielding.why == Why::kStayOver) return {};
  if (yielding.why == Why::kOutOfService) {
    return {OnYield::kStop, "a filler is ended on a GPU that is out of service"};
  }
  if (!yielding.can_be_moved) return {OnYield::kStop, "it has not started yet"};
  if (!yielding.host_has_room) {
    return {OnYield::kStop, "host memory has no room for its memory (turns.host_budget)"};
  }
  return {OnYield::kEvict, {}};
}

Eviction::Step Eviction::fail(std::string problem) {
  problem_ = std::move(problem);
  return Step::kFailed;
}

Eviction::Step Eviction::observe(const Sight& sight, TimePoint now) {
  const auto seconds = [](Duration d) {
    return std::to_string(std::chrono::ceil<std::chrono::seconds>(d).count()) + " s";
  };
  if (sight.on_hold) {
    since_ = now;
    next_ = now + rules_.stall;
    return Step::kGoing;
  }
  if (!sight.drained) {
    // If the filler's work had ended before, only our own order can have let it begin again, so the
    // time for draining starts again.
    out_since_.reset();
    if (left_) since_ = now;
    left_.reset();
    next_ = since_ + rules_.drain;
    if (now >= next_) return fail("its work did not end within " + seconds(rules_.drain));
    return Step::kGoing;
  }
  if (!left_ || sight.left < *left_) since_ = now;
  left_ = sight.left;
  if (!sight.left.is_zero()) {
    out_since_.reset();
    next_ = since_ + (sight.silent ? std::min(rules_.drain, rules_.stall) : rules_.stall);
    if (now < next_) return Step::kGoing;
    return fail(sight.silent ? "a process of it does not answer"
                             : "its memory could not be moved to host memory");
  }
  if (!out_since_) out_since_ = now;
  const TimePoint patient = *out_since_ + rules_.settle;
  const TimePoint enough = patient + 5 * rules_.settle;  // for a driver that cannot be queried
  const Bytes counted = sight.counted.value_or(Bytes());
  const bool agrees = counted <= sight.stays + kUnreportedNoise || now >= patient;
  const bool seen = sight.taken >= *out_since_;
  next_ = now < patient ? patient : enough;
  if (!(seen && agrees) && now < enough) return Step::kGoing;
  stays_ = std::max(counted, sight.stays);
  return Step::kOut;
}

}  // namespace gpurota::filler
