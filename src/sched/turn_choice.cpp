#include "sched/turn_choice.h"

#include <algorithm>

namespace gpurota::sched {

std::vector<LeaseState*> TurnChoice::waiting_in_order() {
  std::vector<LeaseState*> waiting;
  for (auto& [id, lease] : table_.leases) {
    if (lease.phase != Phase::kApart || lease.tenants.empty() || !obstacles_.eligible(lease))
      continue;
    if (table_.wants(lease) || table_.turn_gpus(lease).empty()) waiting.push_back(&lease);
  }
  std::sort(waiting.begin(), waiting.end(), [this](const LeaseState* a, const LeaseState* b) {
    return order_.goes_before(*a, *b);
  });
  return waiting;
}

bool TurnChoice::yields(const LeaseState& holder, const LeaseState& to) const {
  if (holder.phase == Phase::kLeaving) return true;
  if (order_.effective_priority(to) > order_.effective_priority(holder)) return true;
  if (holder.phase == Phase::kEntering) return false;
  if (length_.is_idle_enough(holder, to)) return true;
  const bool nobody_answers = std::none_of(
      holder.tenants.begin(), holder.tenants.end(),
      [&](TenantId id) { return table_.tenants.at(id).reachable && !table_.tenants.at(id).dead; });
  if (nobody_answers) return true;
  if (!order_.goes_before(to, holder)) return false;
  // It had more than its share already: its quantum does not protect it.
  const bool overdrawn = order_.effective_priority(holder) < order_.rank(holder) &&
                         order_.rank(holder) > order_.rank(to);
  return holder.backfill || overdrawn || table_.now >= holder.turn_since + length_.quantum(holder);
}

// GPUs that are kept for a lease may be used as long as that has to wait for others anyway, if there is
// time to do something.
bool TurnChoice::may_backfill(const LeaseState& lease,
                              const std::map<GpuSlot, Reservation>& reserved) const {
  const Duration worth = 4 * length_.move_estimate(lease) + table_.settings.least_quantum;
  for (GpuSlot gpu : table_.turn_gpus(lease)) {
    const auto kept = reserved.find(gpu);
    if (kept != reserved.end() && kept->second.until < table_.now + worth) return false;
  }
  return true;
}

void TurnChoice::choose_for(LeaseState& lease, std::map<GpuSlot, Reservation>& reserved) {
  const Slots gpus = table_.turn_gpus(lease);
  const std::vector<LeaseState*> holders = table_.claimants(gpus, lease.terms.id);
  const bool kept =
      std::any_of(gpus.begin(), gpus.end(), [&](GpuSlot gpu) { return reserved.contains(gpu); });
  if (kept) {
    if (holders.empty() && may_backfill(lease, reserved)) phases_.enter(lease, true);
    return;
  }
  std::optional<TimePoint> until;
  for (const LeaseState* holder : holders) {
    if (yields(*holder, lease)) continue;
    const TimePoint from = holder->phase == Phase::kEntering ? table_.now : holder->turn_since;
    until = std::max(until.value_or(table_.now), from + length_.quantum(*holder));
  }
  if (until) {
    for (GpuSlot gpu : gpus) reserved[gpu] = {lease.terms.id, *until};
    return;
  }
  for (LeaseState* holder : holders) {
    if (holder->phase == Phase::kHolding) phases_.close(*holder);
    if (holder->phase == Phase::kEntering) phases_.abandon_entering(*holder);
  }
  phases_.enter(lease, false);
}

void TurnChoice::choose() {
  for (auto& [id, lease] : table_.leases) {
    if (lease.phase == Phase::kEntering && !obstacles_.eligible(lease))
      phases_.abandon_entering(lease);
  }
  std::map<GpuSlot, Reservation> reserved;
  for (LeaseState* lease : waiting_in_order()) {
    if (lease->phase == Phase::kApart) choose_for(*lease, reserved);
  }
}

// Two may hold one GPU when turns begin there, or when one of them comes to use another GPU. Who waits for
// memory goes on: a thread of its that waits may be what keeps its kernels from ending. So also when it has
// been told to leave already; but if it cannot end before it has its memory, who waits beside it leaves, too: whoever of them
// drains makes room for the other.
void TurnChoice::resolve_conflicts() {
  for (std::uint32_t i = 0; i < table_.gpus.size(); ++i) {
    if (!table_.gpus[i].contended) continue;
    const GpuSlot gpu{i};
    LeaseState* best = nullptr;
    std::vector<LeaseState*> holders = table_.claimants({gpu}, {});
    const bool leaver_waits = std::any_of(holders.begin(), holders.end(), [&](LeaseState* l) {
      return l->phase == Phase::kLeaving && table_.waits_for_room(*l, gpu);
    });
    const bool leaver_is_stuck = std::any_of(holders.begin(), holders.end(), [&](LeaseState* l) {
      return table_.cannot_leave(*l, gpu);
    });
    std::erase_if(holders, [](const LeaseState* l) { return l->phase == Phase::kLeaving; });
    for (LeaseState* lease : holders) {
      const bool gives_way = lease->phase == Phase::kHolding &&
                             (leaver_is_stuck || !table_.waits_for_room(*lease, gpu));
      if (leaver_waits && gives_way) phases_.close(*lease);
    }
    std::erase_if(holders, [](const LeaseState* l) { return l->phase == Phase::kLeaving; });
    for (LeaseState* lease : holders) {
      if (best == nullptr || order_.claims_more(*lease, *best, gpu)) best = lease;
    }
    for (LeaseState* lease : holders) {
      if (lease == best) continue;
      if (lease->phase == Phase::kHolding) phases_.close(*lease);
      if (lease->phase == Phase::kEntering) phases_.abandon_entering(*lease);
    }
  }
}

// Who is still first goes on; nothing is moved for a turn of one's own. Where nobody waits nothing begins anew: who
// comes after the quantum is over need not wait for the end of another.
void TurnChoice::renew_quanta() {
  const std::vector<LeaseState*> waiting = waiting_in_order();
  for (auto& [id, lease] : table_.leases) {
    if (lease.phase != Phase::kHolding || table_.now < lease.turn_since + length_.quantum(lease))
      continue;
    const LeaseState* first = nullptr;
    for (const LeaseState* other : waiting) {
      if (first == nullptr && table_.conflict(lease, *other)) first = other;
    }
    if (first != nullptr && !order_.goes_before(*first, lease)) lease.turn_since = table_.now;
  }
}

}  // namespace gpurota::sched
