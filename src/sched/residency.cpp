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

// Its size is not known. With any that is too small, what is there would look as if somebody had to leave.
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
    const Holding& h = tenant.gpus[gpu.value];
    sum += h.resident + h.coming + h.wired + h.beside + h.lingering;
  }
  return sum;
}

Bytes Residency::wired(GpuSlot gpu) const {
  Bytes sum = gpus_[gpu.value].outsiders;
  for (const auto& [id, tenant] : tenants_) {
    const Holding& h = tenant.gpus[gpu.value];
    sum += h.wired + h.wired_unbacked + h.beside;
  }
  return sum;
}

Bytes Residency::deficit(GpuSlot gpu) const {
  Bytes sum = wired(gpu);
  for (const auto& [id, tenant] : tenants_) {
    const Holding& h = tenant.gpus[gpu.value];
    sum += aside_.contains(tenant.lease) ? h.resident + h.coming : h.movable;
  }
  return sum - capacity(gpu);
}

Holding Residency::of_lease(LeaseId lease, GpuSlot gpu) const {
  Holding sum;
  for (const auto& [id, tenant] : tenants_) {
    if (tenant.lease == lease) sum += tenant.gpus[gpu.value];
  }
  return sum;
}

bool Residency::wholly_resident(LeaseId lease) const {
  return std::none_of(tenants_.begin(), tenants_.end(), [&](const auto& entry) {
    return entry.second.lease == lease &&
           std::any_of(entry.second.gpus.begin(), entry.second.gpus.end(),
                       [](const Holding& h) { return !h.out().is_zero(); });
  });
}

bool Residency::shared(GpuSlot gpu) const { return by_lease(gpu).size() > 1; }

std::map<LeaseId, Holding> Residency::by_lease(GpuSlot gpu) const {
  std::map<LeaseId, Holding> leases;
  for (const auto& [id, tenant] : tenants_) {
    const Holding& h = tenant.gpus[gpu.value];
    if (h.movable.is_zero() && h.wired.is_zero()) continue;
    leases[tenant.lease] += h;
  }
  return leases;
}

// Two pieces more: orders are of whole pieces, and the last block of an order moves whole. What is on its way out cannot be called back.
void Residency::add_host_reserved(GpuSlot gpu, std::map<LeaseId, Bytes>* sums) const {
  const Bytes lacking = deficit(gpu);
  for (const auto& [lease, h] : by_lease(gpu)) {
    Bytes at_most = lacking.is_zero() ? Bytes() : std::min(h.movable, lacking + piece_ + piece_);
    if (aside_.contains(lease)) at_most = h.movable;
    (*sums)[lease] += std::max(h.out() + h.leaving, at_most);
  }
}

std::map<LeaseId, Bytes> Residency::host_reserved_by_lease() const {
  std::map<LeaseId, Bytes> sums;
  for (std::uint32_t i = 0; i < gpus_.size(); ++i) add_host_reserved(GpuSlot{i}, &sums);
  return sums;
}

Bytes Residency::host_reserved() const {
  Bytes sum;
  for (const auto& [lease, bytes] : host_reserved_by_lease()) sum += bytes;
  return sum;
}

Bytes Residency::out_now() const {
  Bytes sum;
  for (const auto& [id, tenant] : tenants_) {
    for (const Holding& h : tenant.gpus) sum += h.out();
  }
  return sum;
}

Bytes Residency::host_for_moves() const {
  Bytes taken = oversize();
  for (const auto& [id, tenant] : tenants_) {
    for (const Holding& h : tenant.gpus) {
      taken += h.out() + h.leaving;
      if (!h.leaving.is_zero()) taken += std::min(h.resident - h.leaving, piece_);
    }
  }
  return host_budget_ - taken;
}

GrowAnswer Residency::check_growth(TenantId tenant, GpuSlot gpu, Bytes bytes, bool wired,
                                   Bytes limit) const {
  const auto found = tenants_.find(tenant);
  if (found == tenants_.end()) return GrowAnswer::kRefusedLimit;
  const LeaseId lease = found->second.lease;
  const Holding own = of_lease(lease, gpu);
  if (own.movable + own.wired + own.wired_unbacked + own.beside + bytes > limit)
    return GrowAnswer::kRefusedLimit;
  Residency after = *this;
  after.at(tenant, gpu).admit(bytes, wired);
  const bool has_room = aside_.contains(lease) || after.fits(lease, gpu);
  if (!has_room || (wired && takes_from_others(lease, gpu, bytes))) {
    return GrowAnswer::kRefusedCapacity;
  }
  return host_has_room_for(after) ? GrowAnswer::kGranted : GrowAnswer::kRefusedHost;
}

// What takes no more of it is not what it is too small for.
bool Residency::host_has_room_for(const Residency& after) const {
  const Bytes reserved = after.host_reserved();
  return reserved <= host_reserved() || reserved + oversize() <= host_budget_;
}

bool Residency::fits(LeaseId lease, GpuSlot gpu) const {
  return of_lease(lease, gpu).movable + wired(gpu) <= capacity(gpu);
}

Bytes Residency::told_wired(GpuSlot gpu) const {
  Bytes sum;
  for (const auto& [id, tenant] : tenants_) {
    const Holding& h = tenant.gpus[gpu.value];
    sum += h.wired + h.wired_unbacked;
  }
  return sum;
}

// Whether somebody would no longer fit for so much more that cannot move. Somebody who does not fit now is not to be kept
// from it for good, when what nobody asked for has gone again.
bool Residency::takes_from_others(LeaseId lease, GpuSlot gpu, Bytes more) const {
  const Bytes all = wired(gpu), told = told_wired(gpu);
  for (const auto& [id, h] : by_lease(gpu)) {
    if (id == lease || aside_.contains(id)) continue;
    for (const Bytes fixed : {all, told}) {
      const Bytes needed = h.movable + fixed;
      if (needed <= capacity(gpu) && needed + more > capacity(gpu)) return true;
    }
  }
  return false;
}

Bytes Residency::largest(GpuSlot gpu) const {
  Bytes most;
  for (const auto& [id, h] : by_lease(gpu)) {
    if (!aside_.contains(id)) most = std::max(most, h.movable);
  }
  return most;
}

bool Residency::host_could_hold(LeaseId lease) const {
  Residency after = *this;
  after.set_aside(lease, true);
  return after.host_reserved() + oversize() <= host_budget_;
}

bool Residency::could_come_back(LeaseId lease) const {
  Residency after = *this;
  after.set_aside(lease, false);
  for (std::uint32_t i = 0; i < gpus_.size(); ++i) {
    const GpuSlot gpu{i};
    const bool there = !of_lease(lease, gpu).movable.is_zero();
    if (there && !after.fits(lease, gpu)) return false;
  }
  return host_has_room_for(after);
}

bool Residency::would_fit(GpuSlot gpu, Bytes capacity) const {
  if (largest(gpu) + wired(gpu) > capacity) return false;
  Residency after = *this;
  after.set_capacity(gpu, capacity);
  return after.host_reserved() + oversize() <= host_budget_;
}

}  // namespace gpurota::sched
