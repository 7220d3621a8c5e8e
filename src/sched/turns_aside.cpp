// Leases that are put aside: apart and wholly out, until they are taken back.
#include "sched/turns.h"

#include <algorithm>

namespace gpurota::sched {

Actions Turns::set_aside(LeaseId lease, bool aside, TimePoint now) {
  now_ = std::max(now_, now);
  actions_.clear();
  const auto found = leases_.find(lease);
  if (found == leases_.end()) return {};
  found->second.aside = aside;
  memory_.set_aside(lease, aside);
  settle();
  return std::move(actions_);
}

bool Turns::could_be_aside(LeaseId lease) const { return memory_.host_could_hold(lease); }
bool Turns::could_come_back(LeaseId lease) const { return memory_.could_come_back(lease); }

// Before anything else is decided: nobody may count on it any more.
void Turns::leave_aside() {
  for (auto& [id, lease] : leases_) {
    if (!lease.aside) continue;
    if (lease.phase == Phase::kEntering) abandon_entering(lease);
    if (lease.phase == Phase::kHolding) close(lease);
  }
}

void Turns::evict_aside(GpuSlot gpu) {
  for (auto& [id, lease] : leases_) {
    const bool here = std::find(lease.gpus.begin(), lease.gpus.end(), gpu) != lease.gpus.end();
    if (!lease.aside || !here || lease.phase != Phase::kApart) continue;
    for (const TenantId tenant : lease.tenants) {
      if (!can_give(tenants_.at(tenant)) || !tenants_.at(tenant).drained()) continue;
      order_out(tenant, gpu, memory_.at(tenant, gpu).resident);
    }
  }
}

}  // namespace gpurota::sched
