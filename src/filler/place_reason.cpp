#include "filler/place_reason.h"

#include <fmt/format.h>

#include <string>

namespace gpurota::filler {
namespace {

Reason reason_of(Why why, std::string_view gpu) {
  switch (why) {
    case Why::kOutOfService:
      return {ReasonCode::kOutOfService, fmt::format("GPU {} is out of service", gpu)};
    case Why::kLeased:
      return {ReasonCode::kLeased, fmt::format("a lease has GPU {}", gpu)};
    case Why::kWanted:
      return {ReasonCode::kWanted, fmt::format("somebody waits for GPU {}", gpu)};
    case Why::kForeign:
      return {ReasonCode::kForeignProcess,
              fmt::format("a process without a lease uses GPU {}", gpu)};
    case Why::kLoad:
      return {ReasonCode::kLoad,
              fmt::format("GPU {} computes for a program that gpurota cannot see", gpu)};
    case Why::kHidden:
      return {ReasonCode::kForeignProcess,
              fmt::format("memory of GPU {} is in use that no listed process has", gpu)};
    case Why::kPaused:
      return paused_reason();
    case Why::kRemoved:
      return {ReasonCode::kRemoved, "the filler was removed"};
    case Why::kStayOver:
      return other_filler_reason(gpu);
    case Why::kNobody:
      break;
  }
  return {ReasonCode::kIdleTime, fmt::format("GPU {} has not been seen idle yet", gpu)};
}

}  // namespace

std::optional<Reason> place_reason(const TurnTaking& turns, std::string_view gpu,
                                   std::optional<WallTime> start_at) {
  const State state = turns.state();
  if (state == State::kOn || state == State::kFree) return std::nullopt;
  if (state == State::kLeaving || !start_at) return reason_of(turns.why(), gpu);
  if (state == State::kResting) {
    return Reason{
        ReasonCode::kResting,
        fmt::format("it had to leave GPU {}, and may be there again at {}", gpu, kTimePlace),
        start_at};
  }
  return Reason{ReasonCode::kIdleTime,
                fmt::format("it starts at {} if GPU {} stays idle", kTimePlace, gpu), start_at};
}

Reason other_filler_reason(std::string_view gpu) {
  return {ReasonCode::kOtherFiller, fmt::format("another filler has GPU {}", gpu)};
}

Reason paused_reason() { return {ReasonCode::kPaused, "the filler is paused"}; }

}  // namespace gpurota::filler
