#include "cli/text/share_text.h"

#include "base/text.h"
#include "cli/text/time_text.h"

#include <fmt/format.h>

#include <optional>

namespace gpurota::cli {
namespace {

std::string gpu_time_text(std::int64_t seconds) {
  const double hours = static_cast<double>(seconds) / 3600;
  if (hours >= 10) return fmt::format("{:.0f} h", hours);
  return hours >= 0.1 ? fmt::format("{:.1f} h", hours)
                      : duration_text(std::chrono::seconds(seconds));
}

std::string used_by_text(const std::string& who, std::int64_t used, std::int64_t weight) {
  const std::string of_weight = weight == 1 ? "" : fmt::format(" (weight {})", weight);
  return fmt::format("{} {}{}", who, gpu_time_text(used), of_weight);
}

// The share that decided: the group's, unless both users are in the same group.
std::string compared_text(const std::string& user, const proto::FairShare& share,
                          const std::optional<std::string>& other_group) {
  if (!share.group || share.group == other_group) {
    return used_by_text(user, share.used_seconds, share.weight);
  }
  return used_by_text("group " + display_text(*share.group, 32),
                      share.group_used_seconds.value_or(0), share.group_weight.value_or(1));
}

std::string decay_text(const proto::FairShare& share) {
  return fmt::format("what is {} old counts half",
                     duration_text(std::chrono::seconds(share.half_life_seconds)));
}

}  // namespace

std::string place_text(const proto::Request& request) {
  if (!request.passed_by) return {};
  return fmt::format("behind {} of {}, who has used less", to_string(request.passed_by->request_id),
                     display_text(request.passed_by->user, 32));
}

std::string place_in_full(const proto::Request& request, uid_t reader) {
  if (!request.fair_share) return {};
  if (request.overdue.value_or(false)) {
    return "it has waited for so long that nobody who comes later goes first";
  }
  if (!request.passed_by) return {};
  const proto::Passing& other = *request.passed_by;
  const std::string user = request.uid == reader ? "you" : display_text(request.user, 32);
  return fmt::format(
      "{} GPU time: {}, {}; {}", place_text(request),
      compared_text(display_text(other.user, 32), other.fair_share, request.fair_share->group),
      compared_text(user, *request.fair_share, other.fair_share.group),
      decay_text(*request.fair_share));
}

std::string share_line(const proto::GetLimits::Reply& reply) {
  if (!reply.fair_share) return {};
  const proto::FairShare& share = *reply.fair_share;
  const std::string weight = share.weight == 1 ? "" : fmt::format(" (weight {})", share.weight);
  std::string text =
      fmt::format("fair share: {} has used {} of GPU time{}", display_text(reply.user, 32),
                  gpu_time_text(share.used_seconds), weight);
  if (share.group) text += ", " + compared_text({}, share, std::nullopt);
  return fmt::format("{}; {}, and whoever has used less goes first\n", text, decay_text(share));
}

}  // namespace gpurota::cli
