#include "client/reason_text.h"

#include "base/text.h"
#include "core/reason.h"

#include <optional>

namespace gpurota::client {
namespace {

constexpr std::size_t kLongestReason = 900;

// `older`: the text of an older daemon, which sends no such reasons.
std::string sentence(const std::optional<proto::Reason>& reason, const std::string& older,
                     WallTime now) {
  return reason ? reason_text(*reason, now) : display_text(older, kLongestReason);
}

template <class Waits>
std::string with_remedy(const Waits& waits, WallTime now) {
  std::string text = reason_text(waits, now);
  if (!waits.wait_reason || !waits.wait_reason->remedy) return text;
  return text + "; " + display_text(*waits.wait_reason->remedy, kLongestReason);
}

}  // namespace

std::string reason_text(const proto::Reason& reason, WallTime now) {
  return display_text(gpurota::reason_text(reason.text, reason.time, now), kLongestReason);
}

std::string reason_text(const proto::Request& request, WallTime now) {
  return sentence(request.wait_reason, request.reason, now);
}

std::string reason_text(const proto::Job& job, WallTime now) {
  return sentence(job.wait_reason, job.detail.value_or(""), now);
}

std::string reason_text(const proto::Booking& booking, WallTime now) {
  return sentence(booking.wait_reason, booking.trouble.value_or(""), now);
}

std::string reason_text(const proto::FillerPlace& place, WallTime now) {
  return sentence(place.wait_reason, "", now);
}

std::string reason_with_remedy(const proto::Request& request, WallTime now) {
  return with_remedy(request, now);
}

std::string reason_with_remedy(const proto::Job& job, WallTime now) {
  return with_remedy(job, now);
}

}  // namespace gpurota::client
