#include "core/reason.h"

#include "core/local_time.h"

#include <chrono>
#include <ctime>

namespace gpurota {
namespace {

// A time nearer than this is shown with seconds.
constexpr std::chrono::minutes kNear{2};

std::string time_text(WallTime time, WallTime now) {
  if (std::chrono::abs(time - now) >= kNear) return local_time_text(time, now);
  const std::tm fields = local_fields(time);
  char text[16];
  return std::string(text, std::strftime(text, sizeof text, "%H:%M:%S", &fields));
}

}  // namespace

const char* to_string(ReasonCode code) {
  switch (code) {
    case ReasonCode::kOutOfService:
      return "out_of_service";
    case ReasonCode::kBehindRequests:
      return "behind_requests";
    case ReasonCode::kBehindRequest:
      return "behind_request";
    case ReasonCode::kKept:
      return "kept";
    case ReasonCode::kLeasedUntil:
      return "leased_until";
    case ReasonCode::kLeasedOpenEnded:
      return "leased_open_ended";
    case ReasonCode::kEnding:
      return "ending";
    case ReasonCode::kExpiredInUse:
      return "expired_in_use";
    case ReasonCode::kBooked:
      return "booked";
    case ReasonCode::kBookedOpenEnded:
      return "booked_open_ended";
    case ReasonCode::kFreeUntil:
      return "free_until";
    case ReasonCode::kOverCapacity:
      return "over_capacity";
    case ReasonCode::kUnreservedUse:
      return "unreserved_use";
    case ReasonCode::kMachineMemory:
      return "machine_memory";
    case ReasonCode::kFillerLeaving:
      return "filler_leaving";
    case ReasonCode::kCannotStart:
      return "cannot_start";
    case ReasonCode::kLeased:
      return "leased";
    case ReasonCode::kWanted:
      return "wanted";
    case ReasonCode::kForeignProcess:
      return "foreign_process";
    case ReasonCode::kLoad:
      return "load";
    case ReasonCode::kPaused:
      return "paused";
    case ReasonCode::kRemoved:
      return "removed";
    case ReasonCode::kOtherFiller:
      return "other_filler";
    case ReasonCode::kIdleTime:
      return "idle_time";
    case ReasonCode::kResting:
      return "resting";
  }
  return "unknown";
}

std::string reason_text(std::string_view text, std::optional<WallTime> time, WallTime now) {
  std::string filled(text);
  // Without a time, the braces are part of untrusted text, such as the reason of a drain.
  const std::size_t place = time ? filled.find(kTimePlace) : std::string::npos;
  if (place == std::string::npos) return filled;
  return filled.replace(place, kTimePlace.size(), time_text(*time, now));
}

std::string reason_text(const Reason& reason, WallTime now) {
  return reason_text(reason.text, reason.time, now);
}

}  // namespace gpurota
