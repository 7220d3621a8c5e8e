#include "daemon/tenants/compute_shares.h"

#include "base/log.h"
#include "core/compute_share.h"
#include "daemon/tenants/tenant_messages.h"

#include <algorithm>
#include <utility>

namespace gpurota::daemon {
namespace {

bool shares_time(const Tenant& tenant) {
  return tenant.has_windows && !tenant.swap && !tenant.dead && tenant.session && tenant.event &&
         tenant.slots.size() == 1;
}

// False: the tenant's socket is full. A tenant without a socket has no windows any more.
bool tell_windows(const Tenant* tenant, bool on) {
  if (!tenant || !tenant->event) return true;
  auto windows = make_message<gpurota_msg_windows>(GPUROTA_MSG_WINDOWS, 0);
  windows.on = on ? 1 : 0;
  return send_message(tenant->event.get(), windows);
}

}  // namespace

ComputeShares::Parties ComputeShares::parties(std::optional<TenantId> without) const {
  Parties found;
  std::map<GpuUuid, std::set<LeaseId>> plain;
  for (const auto& [id, tenant] : tenants_.all()) {
    const LeaseEntry* const entry = leases_.find(tenant->lease);
    if (id == without || !entry || !shares_time(*tenant)) continue;
    const Lease& lease = entry->lease;
    if (lease.latency == LatencyClass::kInteractive || lease.park != ParkState::kNone) continue;
    const ComputeShare share = lease.compute();
    const LeaseId party = share == ComputeShare() ? LeaseId{} : lease.id;
    std::vector<Party>& here = found[tenant->slots.front()];
    const auto known = std::find_if(here.begin(), here.end(),
                                    [&](const Party& each) { return each.lease == party; });
    Party& own = known != here.end() ? *known : here.emplace_back(Party{party, share, 0, {}});
    own.tenants.push_back(id);
    if (party == LeaseId{}) plain[tenant->slots.front()].insert(lease.id);
  }
  for (auto& [gpu, here] : found) set_parts(here, static_cast<int>(plain[gpu].size()));
  std::erase_if(found, [](const auto& each) {
    return each.second.size() < 2 &&
           std::none_of(each.second.begin(), each.second.end(),
                        [](const Party& party) { return party.share.most != 0; });
  });
  return found;
}

// `plain`: how many leases have no share and no bound. The rest, which is not promised, is divided
// equally between all leases without a share. If nothing is promised, the plain leases take no
// part.
void ComputeShares::set_parts(std::vector<Party>& parties, int plain) {
  int promised = 0, others = plain;
  for (const Party& party : parties) {
    promised += party.share.least;
    others += party.share.least == 0 && party.lease != LeaseId{} ? 1 : 0;
  }
  for (Party& party : parties) {
    const int rest = 100 - std::min(promised, kMostComputeShare);
    const int count = party.lease == LeaseId{} ? plain : 1;
    party.percent = party.share.least != 0 ? party.share.least
                                           : std::max(rest * count / std::max(others, 1), 1);
  }
  if (promised == 0) {
    std::erase_if(parties, [](const Party& party) { return party.lease == LeaseId{}; });
  }
}

void ComputeShares::tell(const std::set<TenantId>& wanted) {
  unsent_ = false;
  std::erase_if(told_, [&](TenantId id) {
    if (wanted.contains(id)) return false;
    const bool taken = tell_windows(tenants_.find(id), false);
    unsent_ |= !taken;
    return taken;
  });
  for (const TenantId id : wanted) {
    if (told_.contains(id)) continue;
    if (tell_windows(tenants_.find(id), true)) {
      told_.insert(id);
    } else {
      unsent_ = true;
    }
  }
}

// False: no thread could be started.
bool ComputeShares::divide(const Parties& parties) {
  ComputeDivider::Gpus gpus;
  for (const auto& [gpu, here] : parties) {
    for (const Party& party : here) {
      ComputeDivider::Party& shown = gpus[gpu].emplace_back();
      shown.terms = {party.lease.value, party.percent, party.share.least != 0, party.share.most};
      for (const TenantId id : party.tenants) {
        Tenant& tenant = *tenants_.find(id);
        shown.processes.push_back({tenant.lease, &tenant.shared()});
      }
    }
  }
  if (auto set = divider_.set(std::move(gpus)); !set) {
    log::error("compute time is not divided", {{"error", set.error().message}});
    return false;
  }
  return true;
}

void ComputeShares::refresh(std::optional<TenantId> without) {
  Parties now = parties(without);
  if (now == parties_ && !unsent_) return;
  std::set<TenantId> wanted;
  for (const auto& [gpu, here] : now) {
    for (const Party& party : here) wanted.insert(party.tenants.begin(), party.tenants.end());
  }
  if (now != parties_ && !divide(now)) return;
  parties_ = std::move(now);
  tell(wanted);
}

void ComputeShares::forget(const Tenant& tenant) {
  refresh(tenant.id);
  told_.erase(tenant.id);
}

void ComputeShares::retry() {
  if (unsent_) refresh();
}

}  // namespace gpurota::daemon
