#include "cli/text/last_minute_text.h"

#include <fmt/format.h>

#include <optional>
#include <string>

namespace gpurota::cli {
namespace {

// In percent. Less is not worth a word in a narrow column, or does not show that a lease wants
// more.
constexpr int kMuch = 10, kWantsMore = 3;

std::string span_text(const proto::LastMinute& minute) {
  return minute.seconds >= 60 ? "the last minute" : fmt::format("the last {} s", minute.seconds);
}

std::string name_text(const proto::HeldFor& held) {
  const bool interactive = held.latency == proto::LatencyClass::kInteractive;
  return to_string(held.lease_id) + (interactive ? " (interactive)" : "");
}

}  // namespace

std::string held_back_text(const proto::Lease& lease) {
  if (!lease.last_minute || lease.last_minute->held_percent <= 0) return {};
  const proto::LastMinute& minute = *lease.last_minute;
  std::string whom;
  for (const proto::HeldFor& held : minute.held_for) {
    whom += (whom.empty() ? ", for " : ", ") + name_text(held);
    if (minute.held_for.size() > 1) whom += fmt::format(" {} %", held.percent);
  }
  return fmt::format("{} % of {}{}", minute.held_percent, span_text(minute), whom);
}

std::string got_text(const proto::Lease& lease) {
  if (!lease.last_minute || !lease.last_minute->got_percent) return {};
  const proto::LastMinute& minute = *lease.last_minute;
  const int waited = minute.held_percent + minute.bounded_percent.value_or(0);
  return fmt::format("{} % in {}{}", *minute.got_percent, span_text(minute),
                     waited >= kWantsMore ? ", and wants more" : "");
}

std::string bounded_text(const proto::Lease& lease) {
  if (!lease.last_minute || lease.last_minute->bounded_percent.value_or(0) <= 0) return {};
  return fmt::format("{} % of {}", *lease.last_minute->bounded_percent,
                     span_text(*lease.last_minute));
}

std::string short_held_text(const proto::Lease& lease) {
  if (!lease.last_minute || lease.last_minute->held_percent < kMuch) return {};
  std::string whom;
  for (const proto::HeldFor& held : lease.last_minute->held_for) {
    whom += (whom.empty() ? " for " : ", ") + to_string(held.lease_id);
  }
  return fmt::format("held back {}%{}", lease.last_minute->held_percent, whom);
}

}  // namespace gpurota::cli
