#include "sched/turn_order.h"

#include <algorithm>

namespace gpurota::sched {

bool TurnOrder::is_above_soft(const LeaseState& lease) const {
  return std::any_of(lease.terms.gpus.begin(), lease.terms.gpus.end(),
                     [&](const LeaseTerms::Gpu& gpu) {
                       const auto slot = table_.memory.slot_of(gpu.uuid);
                       if (!gpu.soft_limit || !slot) return false;
                       const Holding h = table_.memory.of_lease(lease.terms.id, *slot);
                       return h.movable + h.wired + h.wired_unbacked + h.beside > *gpu.soft_limit;
                     });
}

int TurnOrder::rank(const LeaseState& lease) {
  constexpr int kBehindAll = 1 << 20;  // further than any two priorities are apart
  return lease.terms.priority - (lease.above_soft ? kBehindAll : 0);
}

int TurnOrder::effective_priority(const LeaseState& lease) const {
  const Slots gpus = table_.turn_gpus(lease);
  const bool spent =
      std::any_of(gpus.begin(), gpus.end(), [&](GpuSlot g) { return table_.gpus[g.value].spent; });
  if (!spent) return rank(lease);
  int lowest = rank(lease);
  for (const auto& [id, other] : table_.leases) lowest = std::min(lowest, rank(other));
  return lowest;
}

bool TurnOrder::goes_before(const LeaseState& a, const LeaseState& b) const {
  const int first = effective_priority(a);
  const int second = effective_priority(b);
  if (first != second) return first > second;
  const double had = a.clock.read(table_.now, a.terms.weight);
  const double other_had = b.clock.read(table_.now, b.terms.weight);
  if (had != other_had) return had < other_had;
  // Who has its turn gives it to who has had as much, and wants it.
  const TimePoint last = a.clock.running() ? table_.now : a.held_last;
  const TimePoint other_last = b.clock.running() ? table_.now : b.held_last;
  if (last != other_last) return last < other_last;
  return a.terms.id < b.terms.id;
}

bool TurnOrder::claims_more(const LeaseState& a, const LeaseState& b, GpuSlot gpu) const {
  if (table_.waits_for_room(a, gpu) != table_.waits_for_room(b, gpu))
    return table_.waits_for_room(a, gpu);
  if (table_.wants(a) != table_.wants(b)) return table_.wants(a);
  return goes_before(a, b);
}

}  // namespace gpurota::sched
