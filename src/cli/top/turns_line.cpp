#include "cli/top/turns_line.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace gpurota::cli::topview {
namespace {

constexpr std::size_t kLongestName = 32;

std::string short_time(std::int64_t ms) {
  ms = std::max<std::int64_t>(ms, 0);
  if (ms >= 60000) return fmt::format("{} min", ms / 60000);
  return fmt::format("{:.1f} s", static_cast<double>(ms) / 1000);
}

std::optional<std::string> time_until(const std::optional<WallTime>& time, WallTime now) {
  if (!time) return std::nullopt;
  return short_time((*time - now).count());
}

bool has_turn(const proto::TurnLease& lease) {
  return lease.phase == "holding" || lease.phase == "entering";
}

// The waiting leases, in order.
std::vector<const proto::TurnLease*> waiting_of(const proto::TurnGpu& gpu) {
  std::vector<const proto::TurnLease*> waiting;
  for (const proto::TurnLease& lease : gpu.leases) {
    if (lease.position > 0) waiting.push_back(&lease);
  }
  std::sort(waiting.begin(), waiting.end(),
            [](const auto* a, const auto* b) { return a->position < b->position; });
  return waiting;
}

// The time until the present turn ends at the latest, and the next turn begins.
std::optional<std::string> left_of_turn(const proto::TurnGpu& gpu, WallTime now) {
  const auto waiting = waiting_of(gpu);
  return waiting.empty() ? std::nullopt : time_until(waiting.front()->earliest, now);
}

std::string whose(const proto::TurnLease& lease) {
  return fmt::format("{} of {}", to_string(lease.lease_id), display_text(lease.user, kLongestName));
}

std::string holder_text(const proto::TurnGpu& gpu, const proto::TurnLease& lease, WallTime now) {
  std::string text = "turn: " + whose(lease);
  const auto left = left_of_turn(gpu, now);
  if (lease.phase == "entering") return text + ", whose memory is coming back";
  if (left && lease.quantum_ms > 0) {
    return text + fmt::format(", {} of {} left", *left, short_time(lease.quantum_ms));
  }
  return left ? text + fmt::format(", {} left", *left) : text;
}

std::string ordinal_text(int position) {
  const int last = position % 100 / 10 == 1 ? 0 : position % 10;
  return std::to_string(position) + (last == 1 ? "st" : last == 2 ? "nd" : last == 3 ? "rd" : "th");
}

}  // namespace

std::string turns_line(const proto::TurnGpu& gpu, WallTime now) {
  std::string text;
  for (const proto::TurnLease& lease : gpu.leases) {
    if (has_turn(lease)) text += (text.empty() ? "" : "; ") + holder_text(gpu, lease, now);
  }
  const char* word = "next: ";
  for (const proto::TurnLease* const lease : waiting_of(gpu)) {
    text += (text.empty() ? "" : "; ") + std::string(word) + whose(*lease);
    if (const auto wait = time_until(lease->earliest, now)) text += ", in " + *wait;
    word = "then ";
  }
  return text;
}

std::string turn_of(const proto::TurnGpu& gpu, LeaseId id, WallTime now) {
  for (const proto::TurnLease& lease : gpu.leases) {
    if (lease.lease_id != id) continue;
    if (lease.phase == "leaving") return "ends";
    const auto time = has_turn(lease)      ? left_of_turn(gpu, now)
                      : lease.position > 0 ? time_until(lease.earliest, now)
                                           : std::nullopt;
    const std::string word = has_turn(lease)       ? "now"
                             : lease.position == 0 ? "-"
                             : lease.position == 1 ? "next"
                                                   : ordinal_text(lease.position);
    return time ? word + " " + *time : word;
  }
  return "";
}

}  // namespace gpurota::cli::topview
