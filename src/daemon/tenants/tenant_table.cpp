#include "daemon/tenants/tenant_table.h"

#include <algorithm>
#include <utility>

namespace gpurota::daemon {

Tenant& TenantTable::add(std::unique_ptr<Tenant> tenant) {
  Tenant& added = *tenant;
  of_lease_[added.lease][added.id] = &added;
  of_process_.emplace(added.process.pid(), &added);
  tenants_.emplace(added.id, std::move(tenant));
  return added;
}

void TenantTable::erase(Tenant& tenant) {
  const auto siblings = of_lease_.find(tenant.lease);
  siblings->second.erase(tenant.id);
  if (siblings->second.empty()) of_lease_.erase(siblings);
  const auto [begin, end] = of_process_.equal_range(tenant.process.pid());
  of_process_.erase(std::find_if(begin, end, [&](const auto& e) { return e.second == &tenant; }));
  dead_.erase(tenant.id);
  tenants_.erase(tenants_.find(tenant.id));
}

bool TenantTable::mark_dead(Tenant& tenant) {
  if (std::exchange(tenant.dead, true)) return false;
  dead_.insert(tenant.id);
  return true;
}

Tenant* TenantTable::find(TenantId id) const {
  const auto it = tenants_.find(id);
  return it == tenants_.end() ? nullptr : it->second.get();
}

const std::map<TenantId, Tenant*>& TenantTable::of_lease(LeaseId lease) const {
  static const std::map<TenantId, Tenant*> kNone;
  const auto it = of_lease_.find(lease);
  return it == of_lease_.end() ? kNone : it->second;
}

std::vector<Tenant*> TenantTable::dead() const {
  std::vector<Tenant*> all;
  for (const TenantId id : dead_) all.push_back(find(id));
  return all;
}

std::optional<LeaseId> TenantTable::lease_of(pid_t pid) const {
  const auto at = of_process_.find(pid);
  return at == of_process_.end() ? std::nullopt : std::optional(at->second->lease);
}

Bytes TenantTable::imported_by(pid_t pid, const GpuUuid& gpu) const {
  const auto use = use_of(pid, gpu);
  return use ? use->imported : Bytes();
}

std::optional<Bytes> TenantTable::counted_in(pid_t pid, const GpuUuid& gpu) const {
  const auto use = use_of(pid, gpu);
  return use ? std::optional(use->used) : std::nullopt;
}

std::vector<pid_t> TenantTable::present_on(const GpuUuid& gpu) const {
  std::vector<pid_t> present;
  for (const auto& [pid, tenant] : of_process_) {
    const auto slot = tenant->dead ? std::nullopt : tenant->slot_of(gpu);
    if (!slot || (!present.empty() && present.back() == pid)) continue;
    const TenantUse use = read_use(tenant->shared(), *slot);
    if (!use.used.is_zero() || use.allocations > 0) present.push_back(pid);
  }
  return present;
}

std::optional<TenantUse> TenantTable::use_of(pid_t pid, const GpuUuid& gpu) const {
  const auto [begin, end] = of_process_.equal_range(pid);
  for (auto at = begin; at != end; ++at) {
    const Tenant* const tenant = at->second;
    if (tenant->dead) continue;
    if (const auto slot = tenant->slot_of(gpu)) return read_use(tenant->shared(), *slot);
  }
  return std::nullopt;
}

}  // namespace gpurota::daemon
