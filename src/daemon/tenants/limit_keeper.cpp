#include "daemon/tenants/limit_keeper.h"

#include "base/log.h"

#include <climits>

namespace gpurota::daemon {
namespace {

using Soft = config::SoftLimit::Policy;

// Fillers have the lowest priority: they run only while nobody else needs the GPU.
int priority_of(const Lease& lease) {
  return lease.kind == LeaseKind::kFiller ? INT_MIN : lease.priority;
}

bool gives_way(const config::Config& config) {
  return config.soft_limit.policy == Soft::kEvict || config.soft_limit.policy == Soft::kStop;
}

lease::LimitRules rules_of(const config::Config& config) {
  return {config.soft_limit.policy == Soft::kStop, config.soft_limit.grace,
          config.lowered_limit.policy == config::LoweredLimit::Policy::kStop,
          config.lowered_limit.grace};
}

}  // namespace

Duration LimitKeeper::throttle(const config::Config& config) {
  return config.soft_limit.policy == Soft::kWarn ? Duration::zero()
                                                 : config.soft_limit.throttle_delay;
}

void LimitKeeper::warn(const GpuUuid& gpu, const lease::LimitAction& action) const {
  log::warn("a lease is above a limit",
            {{"lease", to_string(action.lease)}, {"gpu", gpu.value}, {"message", action.message}});
  if (parts_.config.soft_limit.tell_owner) {
    parts_.owners.tell_owner(action.lease, to_string(action.lease) + " " + action.message);
  }
}

void LimitKeeper::on_lease_change(const LeaseEntry& entry, bool gone) {
  if (gone) policy_.forget(entry.lease.id);
}

void LimitKeeper::after_sample(const GpuUuid& gpu, TimePoint now) {
  std::vector<lease::LimitedLease> limited;
  for (const auto& [id, entry] : parts_.tables.leases) {
    const LeaseGpu* share = entry.lease.find_gpu(gpu);
    const lease::Account* account = parts_.grants.find(id, gpu).if_there();
    const bool swap = share && share->swap;
    if (!share || !share->limit || (!account && !swap)) continue;
    const auto [charged, granted] =
        swap ? parts_.turns.charge(id, gpu) : std::pair(account->charged(), account->granted());
    // An oversize lease uses up its part of the GPU by design. Memory beyond that part does not
    // mean that its limit was lowered.
    const Bytes limit = *share->limit + share->oversize;
    limited.push_back({id, priority_of(entry.lease), entry.cause.has_value(), limit,
                       share->soft_limit, charged, granted, swap && gives_way(parts_.config)});
  }
  for (const lease::LimitAction& action :
       policy_.decide(gpu, limited, rules_of(parts_.config), now)) {
    if (action.kind == lease::LimitAction::Kind::kWarn) {
      warn(gpu, action);
    } else {
      parts_.leases.end(action.lease, EndCause::kReleased, action.message);
    }
  }
}

}  // namespace gpurota::daemon
