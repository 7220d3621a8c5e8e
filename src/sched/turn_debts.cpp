#include "sched/turn_debts.h"

#include <algorithm>

namespace gpurota::sched {
namespace {

// A tick comes each second while something is owed.
constexpr Duration kMostStep = std::chrono::seconds(2);

}  // namespace

void TurnDebts::advance(TimePoint now) {
  const Duration step = std::clamp<Duration>(now - table_.now, Duration::zero(), kMostStep);
  if (table_.now == TimePoint{} || step == Duration::zero() || table_.on_hold()) return;
  table_.awake += step;
  for (auto& [id, lease] : table_.leases) count(lease, step);
}

// Memory that the lease itself waits for may be what keeps its work from ending.
bool TurnDebts::drains_for_others(const LeaseState& lease) const {
  if (lease.phase != Phase::kLeaving) return false;
  const bool waits_itself = std::any_of(lease.gpus.begin(), lease.gpus.end(), [&](GpuSlot gpu) {
    return table_.waits_for_room(lease, gpu);
  });
  return !waits_itself && (lease.aside || obstacles_.somebody_waits_for(lease));
}

void TurnDebts::count(LeaseState& lease, Duration step) {
  if (lease.is_held_up) lease.held_up += step;
  if (drains_for_others(lease)) lease.drain_owed += step;
  const bool enters = lease.phase == Phase::kEntering;
  for (const TenantId id : lease.tenants) {
    TenantState& tenant = table_.tenants.at(id);
    if (!tenant.can_answer()) continue;
    for (const GpuSlot gpu : lease.gpus) {
      const Holding& held = table_.memory.at(id, gpu);
      const bool restores =
          enters && !held.coming.is_zero() && obstacles_.somebody_waits_for(lease);
      if (!held.leaving.is_zero() || restores) tenant.moves[gpu].owed += step;
    }
  }
}

void TurnDebts::watch(LeaseState& lease) {
  const Duration bound = table_.settings.longest_drain;
  if (bound == Duration::zero()) return;
  const Duration owed = table_.owed(lease);
  if (owed < bound / 2) {
    lease.debt_told = DebtTold::kNothing;
    return;
  }
  if (lease.debt_told == DebtTold::kNothing) {
    lease.debt_told = DebtTold::kHalf;
    table_.report_debt(lease.terms.id, std::max<Duration>(bound - owed, Duration::zero()));
  }
  if (owed < bound || lease.debt_told == DebtTold::kEnd) return;
  lease.debt_told = DebtTold::kEnd;
  table_.report(Trouble::kNotYielding, lease.terms.id, {}, true);
}

}  // namespace gpurota::sched
