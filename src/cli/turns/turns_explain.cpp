// The text of gpurota explain about a swap lease: a part of turns_text.h.
#include "base/text.h"
#include "cli/text/time_text.h"
#include "cli/turns/turns_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota::cli {
namespace {

const proto::TurnLease* find(const proto::TurnGpu& gpu, LeaseId id) {
  for (const proto::TurnLease& lease : gpu.leases) {
    if (lease.lease_id == id) return &lease;
  }
  return nullptr;
}

std::string name_of(const proto::TurnGpu& gpu, LeaseId id) {
  const proto::TurnLease* lease = find(gpu, id);
  return lease ? fmt::format("{} of {}", to_string(id), display_text(lease->user, 32))
               : to_string(id);
}

std::string seconds_text(std::int64_t ms) {
  return fmt::format("{:.1f} s", static_cast<double>(ms) / 1000);
}

std::string waiting_line(const proto::TurnGpu& gpu, const proto::TurnLease& lease, WallTime now) {
  std::string text = "waits for " + display_text(lease.waits_for, 60);
  if (lease.pid)
    text += fmt::format(" (pid {}: 'kill -CONT {}' resumes it)", *lease.pid, *lease.pid);
  if (lease.position == 1) text += ", and is next";
  if (lease.position > 1) text += fmt::format(", {} are ahead of it", lease.position - 1);
  const bool held_up = lease.position == 0 && lease.behind;  // by a process that cannot answer
  if (lease.behind)
    text += (held_up ? "; it belongs to " : "; the turn is held by ") + name_of(gpu, *lease.behind);
  if (lease.earliest) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(*lease.earliest - now);
    const std::string time = seconds_text(std::max<std::int64_t>(left.count(), 0));
    text += held_up ? fmt::format(", which is ended in {} unless it continues first", time)
                    : fmt::format(", for {} more at most", time);
  }
  return text;
}

std::string state_line(const proto::TurnGpu& gpu, const proto::TurnLease& lease, WallTime now) {
  if (lease.phase.empty()) return "its programs have not used it yet";
  const bool waits = !lease.waits_for.empty() && lease.waits_for != "nothing";
  if (!gpu.takes_turns && !waits) return "everything fits, so all programs run and none waits";
  if (lease.phase == "holding") {
    const std::string others = gpu.waiting.empty() ? "no lease waits for it"
                                                   : name_of(gpu, gpu.waiting.front()) + " is next";
    return fmt::format("it has the turn; {}", others);
  }
  if (lease.phase == "leaving") return "its turn is over; it is finishing its work";
  if (lease.phase == "entering") {
    return "it has the turn, and " +
           (waits ? waiting_line(gpu, lease, now) : std::string("starts now"));
  }
  if (waits) return waiting_line(gpu, lease, now);
  const std::string holder = gpu.holder && *gpu.holder != lease.lease_id
                                 ? "; the turn is held by " + name_of(gpu, *gpu.holder)
                                 : std::string();
  return "it has no work for the GPU now" + holder;
}

std::string quantum_line(const proto::TurnGpu& gpu, const proto::TurnLease& lease) {
  std::string why = "chosen so that moving memory takes little of the time";
  if (gpu.quantum_ms) why = "as set for the GPU";
  if (lease.own_quantum_ms) {
    why = *lease.own_quantum_ms > 0 ? "as set for this lease"
                                    : "chosen by the cost of moving, as set for this lease";
  }
  return fmt::format("while others wait, its turns last {} ({}); priority {}",
                     seconds_text(lease.quantum_ms), why, lease.priority);
}

}  // namespace

std::string explain_turns(const proto::ListTurns::Reply& reply, LeaseId id, WallTime now) {
  std::string text;
  for (const proto::TurnGpu& gpu : reply.gpus) {
    const proto::TurnLease* lease = find(gpu, id);
    if (!lease) continue;
    text += fmt::format("  GPU {}: {}\n", gpu.index, state_line(gpu, *lease, now));
    const Bytes coming = lease->coming_bytes.value_or(Bytes());
    text += fmt::format("    {} are in GPU memory, {}{} in host memory, {} cannot be moved\n",
                        to_string(lease->resident_bytes),
                        coming.is_zero() ? "" : to_string(coming) + " are being moved back, ",
                        to_string(lease->out_bytes), to_string(lease->wired_bytes));
    if (lease->oversize_bytes) {
      text += fmt::format(
          "    it is oversize: another {} stays in host memory, of the {} that does not fit on the "
          "GPU\n",
          to_string(lease->hosted_bytes.value_or(Bytes())), to_string(*lease->oversize_bytes));
    }
    const std::string speed = speed_text(gpu, *lease);
    if (!speed.empty()) text += fmt::format("    {}\n", speed);
    if (gpu.takes_turns) text += fmt::format("    {}\n", quantum_line(gpu, *lease));
    if (lease->above_soft_limit.value_or(false)) {
      text += fmt::format(
          "    it is above its soft limit of {}: leases that are not above theirs go first\n",
          to_string(lease->soft_limit_bytes.value_or(Bytes())));
    }
  }
  return text;
}

}  // namespace gpurota::cli
