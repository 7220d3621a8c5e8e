#include "sched/turn_length.h"

#include "sched/seconds.h"

#include <algorithm>

namespace gpurota::sched {
namespace {

Duration part_of(Duration whole, double part) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(whole) * part);
}

}  // namespace

Duration TurnLength::move_estimate(const LeaseState& lease) const {
  Duration most{};
  for (GpuSlot gpu : table_.turn_gpus(lease)) {
    const Bytes one_way =
        std::min(table_.memory.of_lease(lease.terms.id, gpu).movable, table_.memory.deficit(gpu));
    most = std::max(most, table_.gpus[gpu.value].cost.estimate(one_way + one_way));
  }
  return most;
}

// Empty: from the cost of its turns. While it takes none, as if it did on all its GPUs.
std::optional<Duration> TurnLength::quantum_as_set(const LeaseState& lease) const {
  const bool from_cost = lease.terms.quantum == Duration::zero();
  if (from_cost) return std::nullopt;
  if (lease.terms.quantum) return lease.terms.quantum;
  const Slots contended = table_.turn_gpus(lease);
  std::optional<Duration> of_gpu;
  for (GpuSlot gpu : contended.empty() ? lease.gpus : contended) {
    const auto& set = table_.gpus[gpu.value].settings.quantum;
    if (set) of_gpu = of_gpu ? std::min(*of_gpu, *set) : *set;
  }
  return of_gpu ? of_gpu : table_.settings.quantum;
}

Duration TurnLength::quantum(const LeaseState& lease) const {
  const auto set = quantum_as_set(lease);
  return set ? *set : quantum_for(turn_cost(lease), table_.settings);
}

// What its turns cost counts if that is less: much of its memory does not change, and is not copied.
Duration TurnLength::turn_cost(const LeaseState& lease) const {
  const Duration estimate = move_estimate(lease);
  if (!lease.cost.known()) return estimate;
  const std::chrono::duration<double> measured(lease.cost.value());
  return std::min(estimate, std::chrono::duration_cast<Duration>(measured));
}

bool TurnLength::is_idle_enough(const LeaseState& holder, const LeaseState& to) const {
  if (holder.phase != Phase::kHolding || !holder.idle_since) return false;
  return table_.now >= *holder.idle_since + idle_before_release(holder, to);
}

// Who outranks the other takes the turn back at once: moving there and back. Among equals it comes back when it is due; what
// giving it away early costs is the part of a switch that the rest of the turn would have paid for.
Duration TurnLength::idle_before_release(const LeaseState& holder, const LeaseState& to) const {
  const Duration cost = turn_cost(holder);
  Duration price = 2 * cost;
  if (order_.effective_priority(holder) <= order_.effective_priority(to)) {
    const Duration turn = quantum_as_set(holder).value_or(quantum_for(cost, table_.settings));
    const Duration rest = holder.turn_since + turn - *holder.idle_since;
    price = part_of(cost, seconds(std::clamp(rest, Duration{}, turn)) / seconds(turn + cost));
  }
  return holder.pauses.before_release(price, table_.settings);
}

}  // namespace gpurota::sched
