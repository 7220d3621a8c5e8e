#include "cli/turns/turns_text.h"

#include "base/text.h"
#include "cli/text/time_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota::cli {
namespace {

// The number of a GPU's switches that are shown; --json has all known ones.
constexpr std::size_t kShownSwitches = 3;

std::string time_text(std::int64_t ms) {
  if (ms < 1000) return fmt::format("{} ms", ms);
  return fmt::format("{:.1f} s", static_cast<double>(ms) / 1000);
}

// Remarks about a GPU as a whole.
std::string turns_state(const proto::TurnGpu& gpu) {
  std::string text;
  if (gpu.leases.empty()) {
    text += "no swap lease";
  } else if (!gpu.takes_turns) {
    text += "everything fits; not taking turns";
  } else {
    text += fmt::format("taking turns; short by {}", to_string(gpu.deficit_bytes));
  }
  text += fmt::format("; {} of {} held", to_string(gpu.used_bytes, gpu.capacity_bytes),
                      to_string(gpu.capacity_bytes, gpu.used_bytes));
  if (gpu.mode != "auto") text += fmt::format("; turns {}", display_text(gpu.mode, 10));
  if (gpu.quantum_ms) text += fmt::format("; quantum {}", time_text(*gpu.quantum_ms));
  return text;
}

// Whether no lease takes turns there, now or lately.
bool is_plain(const proto::TurnGpu& gpu) { return gpu.leases.empty() && gpu.switches.empty(); }

// "0-3, 5".
std::string ranges_text(const std::vector<int>& indices) {
  std::string text;
  for (std::size_t first = 0, last = 0; first < indices.size(); first = last + 1) {
    last = first;
    while (last + 1 < indices.size() && indices[last + 1] == indices[last] + 1) ++last;
    text += (text.empty() ? "" : ", ") + std::to_string(indices[first]);
    if (last > first) text += fmt::format("{}{}", last == first + 1 ? ", " : "-", indices[last]);
  }
  return text;
}

std::string coming_text(const proto::TurnLease& lease) {
  const Bytes coming = lease.coming_bytes.value_or(Bytes());
  return coming.is_zero() ? std::string() : to_string(coming) + " coming";
}

std::string wait_text(const proto::TurnLease& lease, WallTime now) {
  std::string text = coming_text(lease);
  if (lease.waits_for.empty() || lease.waits_for == "nothing") return text;
  text = lease.waits_for + (text.empty() ? "" : ", ") + text;
  if (lease.pid) text += fmt::format(" (pid {})", *lease.pid);
  if (lease.position > 0) text += fmt::format(", position {}", lease.position);
  if (lease.behind) text += fmt::format(", behind {}", to_string(*lease.behind));
  if (lease.earliest) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(*lease.earliest - now);
    text += fmt::format(", within {}", time_text(std::max<std::int64_t>(left.count(), 0)));
  }
  if (lease.above_soft_limit.value_or(false)) text += ", above its soft limit";
  if (lease.oversize_bytes) {
    text += fmt::format(", oversize: {} stays in host memory",
                        to_string(lease.hosted_bytes.value_or(Bytes())));
  }
  return text;
}

// A star marks a value that was set for this lease alone.
std::string quantum_text(const proto::TurnLease& lease) {
  return time_text(lease.quantum_ms) + (lease.own_quantum_ms ? "*" : "");
}

std::string leases_of(const proto::TurnGpu& gpu, const Layout& layout, WallTime now) {
  Table table({{"LEASE"},
               {"USER", false, 6},
               {"PRIORITY", true},
               {"PHASE"},
               {"RESIDENT", true},
               {"OUT", true},
               {"WIRED", true},
               {"LIMIT", true},
               {"QUANTUM", true},
               {"WAITS FOR", false, 12}});
  for (const proto::TurnLease& lease : gpu.leases) {
    const bool holds = lease.phase == "holding";
    // The lease waits for nothing, because it has no work.
    const bool idle =
        lease.phase.empty() || (lease.phase == "waiting" && wait_text(lease, now).empty());
    table.add({{to_string(lease.lease_id), Colour::kNone},
               {lease.user, Colour::kNone},
               {std::to_string(lease.priority), Colour::kNone},
               {idle ? "idle" : lease.phase, holds ? Colour::kGreen : Colour::kNone},
               {to_string(lease.resident_bytes), Colour::kNone},
               {to_string(lease.out_bytes), Colour::kNone},
               {to_string(lease.wired_bytes), Colour::kNone},
               {to_string(lease.limit_bytes), Colour::kNone},
               {quantum_text(lease), Colour::kNone},
               {wait_text(lease, now), Colour::kDim}});
  }
  return table.empty() ? std::string() : table.render(layout);
}

std::string speeds_of(const proto::TurnGpu& gpu) {
  std::string text;
  for (const proto::TurnLease& lease : gpu.leases) {
    const std::string speed = speed_text(gpu, lease);
    if (!speed.empty()) text += fmt::format("  {}: {}\n", to_string(lease.lease_id), speed);
  }
  return text;
}

std::string switches_of(const proto::TurnGpu& gpu, WallTime now) {
  std::string text;
  const std::size_t skipped =
      gpu.switches.size() > kShownSwitches ? gpu.switches.size() - kShownSwitches : 0;
  for (std::size_t i = skipped; i < gpu.switches.size(); ++i) {
    const proto::TurnSwitch& each = gpu.switches[i];
    std::string out = to_string(each.out_bytes) + " out";
    if (!each.clean_bytes.is_zero()) {
      out += fmt::format(" ({} of it not copied)", to_string(each.clean_bytes));
    }
    text +=
        fmt::format("  {} ago: {} -> {}, {} in, {}, {:.1f} ms\n", span_text(now - each.time),
                    each.from ? to_string(*each.from) : "nobody", to_string(each.to),
                    to_string(each.in_bytes), out, static_cast<double>(each.microseconds) / 1000);
  }
  return text;
}

// If a switch moved less than this, its duration mostly shows its other costs, not the speed of
// moving.
constexpr Bytes kLeastForSpeed = mib(256);

}  // namespace

std::string speed_text(const proto::TurnGpu& gpu, const proto::TurnLease& lease) {
  std::string text;
  const Bytes may_move = lease.may_move_bytes.value_or(Bytes());
  if (!may_move.is_zero()) {
    const Bytes pinned = std::min(lease.pinned_bytes.value_or(Bytes()), may_move);
    text = fmt::format("{} of the {} that may have to move are pinned", to_string(pinned),
                       to_string(may_move));
  }
  const auto last = std::find_if(gpu.switches.rbegin(), gpu.switches.rend(), [&](const auto& each) {
    return each.to == lease.lease_id && each.in_bytes + each.out_bytes >= kLeastForSpeed &&
           each.microseconds > 0;
  });
  if (last == gpu.switches.rend()) return text;
  const auto moved = static_cast<double>((last->in_bytes + last->out_bytes).count());
  return text + fmt::format("{}last switch {:.1f} GiB/s", text.empty() ? "" : "; ",
                            moved / static_cast<double>(last->microseconds) * 1e6 /
                                static_cast<double>(gib(1).count()));
}

std::string turns_text(const proto::ListTurns::Reply& reply, const Layout& layout, WallTime now) {
  std::string text;
  for (std::size_t first = 0, next = 0; first < reply.gpus.size(); first = next) {
    const proto::TurnGpu& gpu = reply.gpus[first];
    const std::string state = turns_state(gpu);
    // One line for equal GPUs that follow each other.
    std::vector<int> alike = {gpu.index};
    for (next = first + 1; next < reply.gpus.size() && is_plain(gpu); ++next) {
      if (!is_plain(reply.gpus[next]) || turns_state(reply.gpus[next]) != state) break;
      alike.push_back(reply.gpus[next].index);
    }
    text += fmt::format("GPU {}: {}\n", ranges_text(alike), state);
    text += leases_of(gpu, layout, now) + speeds_of(gpu) + switches_of(gpu, now);
  }
  if (reply.gpus.empty()) return "no GPU ('gpurota doctor' says why)\n";
  return text + fmt::format("{} of {} of host memory for turns is in use\n",
                            to_string(reply.host_out_bytes), to_string(reply.host_budget_bytes));
}

}  // namespace gpurota::cli
