#include "sched/residency.h"

#include <algorithm>

namespace gpurota::sched {

Holding& Holding::operator+=(const Holding& other) {
  movable += other.movable;
  resident += other.resident;
  coming += other.coming;
  leaving += other.leaving;
  wired += other.wired;
  unbacked += other.unbacked;
  wired_unbacked += other.wired_unbacked;
  lingering += other.lingering;
  beside += other.beside;
  hosted += other.hosted;
  return *this;
}

std::optional<GpuSlot> Residency::slot_of(const GpuUuid& gpu) const {
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    if (gpus_[i].uuid == gpu) return GpuSlot{static_cast<std::uint32_t>(i)};
  }
  return std::nullopt;
}

GpuSlot Residency::add_gpu(const GpuUuid& gpu, Bytes capacity) {
  if (const auto known = slot_of(gpu)) {
    set_capacity(*known, capacity);
    gpus_[known->value].lost = false;
    return *known;
  }
  gpus_.push_back({gpu, capacity, {}});
  for (auto& [id, tenant] : tenants_) tenant.gpus.resize(gpus_.size());
  return GpuSlot{static_cast<std::uint32_t>(gpus_.size() - 1)};
}

// The size of a lost GPU is unknown. Assume the largest, because too small a size would look like a
// deficit.
GpuSlot Residency::add_lost_gpu(const GpuUuid& gpu) {
  if (const auto known = slot_of(gpu)) return *known;
  const GpuSlot slot = add_gpu(gpu, Bytes(UINT64_MAX));
  gpus_[slot.value].lost = true;
  return slot;
}

void Residency::add(TenantId tenant, LeaseId lease) {
  tenants_[tenant] = {lease, std::vector<Holding>(gpus_.size())};
}

void Residency::take_over(TenantId tenant, GpuSlot gpu, const TenantMemory& said) {
  Holding& holding = at(tenant, gpu) = {};
  holding.movable = said.movable;
  holding.resident = std::min(said.resident, said.movable);
  holding.wired = said.wired;
  holding.hosted = said.hosted;
  holding.lingering = said.lingering;
}

void Residency::remove(TenantId tenant) { tenants_.erase(tenant); }

void Residency::mark_dead(TenantId tenant) {
  const auto found = tenants_.find(tenant);
  if (found == tenants_.end()) return;
  for (Holding& h : found->second.gpus) {
    Holding rest;
    rest.lingering = h.lingering + h.resident + h.coming + h.wired + h.beside;
    h = rest;
  }
}

Holding& Residency::at(TenantId tenant, GpuSlot gpu) {
  return tenants_.at(tenant).gpus.at(gpu.value);
}

const Holding& Residency::at(TenantId tenant, GpuSlot gpu) const {
  return tenants_.at(tenant).gpus.at(gpu.value);
}

Maybe<Holding> Residency::find(TenantId tenant, GpuSlot gpu) {
  return tenants_.contains(tenant) ? Maybe<Holding>(at(tenant, gpu)) : Maybe<Holding>();
}

Maybe<const Holding> Residency::find(TenantId tenant, GpuSlot gpu) const {
  return tenants_.contains(tenant) ? Maybe(at(tenant, gpu)) : Maybe<const Holding>();
}

Bytes Residency::used(GpuSlot gpu) const {
  Bytes sum = gpus_[gpu.value].outsiders;
  for (const auto& [id, tenant] : tenants_) {
    if (is_parked(tenant.lease)) continue;
    const Holding& h = tenant.gpus[gpu.value];
    sum += h.resident + h.coming + h.wired + h.beside + h.lingering;
  }
  return sum;
}

Bytes Residency::wired(GpuSlot gpu) const {
  Bytes sum = gpus_[gpu.value].outsiders;
  for (const auto& [id, tenant] : tenants_) {
    if (is_parked(tenant.lease)) continue;
    const Holding& h = tenant.gpus[gpu.value];
    sum += h.wired + h.wired_unbacked + h.beside;
  }
  return sum;
}

Bytes Residency::deficit(GpuSlot gpu) const { return wanted(gpu) - capacity(gpu); }

Bytes Residency::wanted(GpuSlot gpu) const {
  Bytes sum = wired(gpu);
  for (const auto& [id, tenant] : tenants_) {
    const Holding& h = tenant.gpus[gpu.value];
    sum += aside_.contains(tenant.lease) ? h.resident + h.coming : h.movable;
  }
  return sum;
}

Holding Residency::of_lease(LeaseId lease, GpuSlot gpu) const {
  Holding sum;
  for (const auto& [id, tenant] : tenants_) {
    if (tenant.lease == lease) sum += tenant.gpus[gpu.value];
  }
  return sum;
}

std::map<LeaseId, Holding> Residency::by_lease(GpuSlot gpu) const {
  std::map<LeaseId, Holding> leases;
  for (const auto& [id, tenant] : tenants_) {
    const Holding& h = tenant.gpus[gpu.value];
    if (h.movable.is_zero() && h.wired.is_zero()) continue;
    leases[tenant.lease] += h;
  }
  return leases;
}

void Residency::set_oversize(LeaseId lease, Bytes bytes) {
  bytes.is_zero() ? void(oversize_.erase(lease)) : void(oversize_[lease] = bytes);
}

Bytes Residency::oversize() const {
  Bytes sum;
  for (const auto& [lease, bytes] : oversize_) sum += bytes;
  return sum;
}

std::optional<LeaseId> Residency::lease_of(TenantId tenant) const {
  const auto found = tenants_.find(tenant);
  return found == tenants_.end() ? std::nullopt : std::optional(found->second.lease);
}

}  // namespace gpurota::sched
