#include "sched/residency_rules.h"

#include "sched/host_needs.h"

#include <algorithm>

namespace gpurota::sched {
namespace {

// Tenants map memory in whole pages of this size.
constexpr Bytes kPage = mib(2);

Bytes in_pages(Bytes bytes) {
  return Bytes((bytes + kPage - Bytes(1)).count() / kPage.count() * kPage.count());
}

}  // namespace

GrowAnswer ResidencyRules::check_growth(TenantId tenant, GpuSlot gpu, Bytes bytes, bool wired,
                                        Bytes limit) const {
  const auto lease = memory_.lease_of(tenant);
  if (!lease) return GrowAnswer::kRefusedLimit;
  const Holding own = memory_.of_lease(*lease, gpu);
  if (own.movable + own.wired + own.wired_unbacked + own.beside + bytes > limit)
    return GrowAnswer::kRefusedLimit;
  Residency after = memory_;
  after.at(tenant, gpu).admit(bytes, wired);
  const bool has_room = memory_.is_aside(*lease) || ResidencyRules(after).fits(*lease, gpu);
  if (!has_room || (wired && takes_from_others(*lease, gpu, bytes))) {
    return GrowAnswer::kRefusedCapacity;
  }
  return host_has_room_for(after) ? GrowAnswer::kGranted : GrowAnswer::kRefusedHost;
}

// Sums give the bounds of the limit and the capacity. In the rare case that host memory allows
// less, a binary search with check_growth() finds how much.
Bytes ResidencyRules::available(LeaseId lease, GpuSlot gpu, Bytes limit) const {
  const Holding own = memory_.of_lease(lease, gpu);
  Bytes most = limit - (own.movable + own.wired + own.wired_unbacked + own.beside);
  if (!memory_.is_aside(lease))
    most = std::min(most, memory_.capacity(gpu) - (own.movable + memory_.wired(gpu)));
  const auto& tenants = memory_.tenants();
  const auto one = std::find_if(tenants.begin(), tenants.end(),
                                [&](const auto& each) { return each.second.lease == lease; });
  if (one == tenants.end() || most.is_zero()) return most;
  const auto is_granted = [&](Bytes bytes) {
    return check_growth(one->first, gpu, bytes, false, limit) == GrowAnswer::kGranted;
  };
  if (is_granted(most)) return most;
  std::uint64_t fits = 0, too_much = most.count() / kPage.count() + 1;
  while (fits + 1 < too_much) {
    const std::uint64_t middle = fits + (too_much - fits) / 2;
    (is_granted(Bytes(middle * kPage.count())) ? fits : too_much) = middle;
  }
  return Bytes(fits * kPage.count());
}

// A change that needs no more host memory is never refused for lack of it.
bool ResidencyRules::host_has_room_for(const Residency& after) const {
  const Bytes reserved = HostNeeds(after).reserved();
  return reserved <= HostNeeds(memory_).reserved() ||
         reserved + memory_.oversize() <= memory_.host_budget();
}

bool ResidencyRules::fits(LeaseId lease, GpuSlot gpu) const {
  return memory_.of_lease(lease, gpu).movable + memory_.wired(gpu) <= memory_.capacity(gpu);
}

Bytes ResidencyRules::told_wired(GpuSlot gpu) const {
  Bytes sum;
  for (const auto& [id, tenant] : memory_.tenants()) {
    if (memory_.is_parked(tenant.lease)) continue;
    const Holding& h = tenant.gpus[gpu.value];
    sum += h.wired + h.wired_unbacked;
  }
  return sum;
}

// Whether another lease would no longer fit beside `more` bytes that cannot move. A lease that does
// not fit now, because of memory that nobody asked for, must still fit once that memory is free
// again.
bool ResidencyRules::takes_from_others(LeaseId lease, GpuSlot gpu, Bytes more) const {
  const Bytes all = memory_.wired(gpu), told = told_wired(gpu);
  for (const auto& [id, h] : memory_.by_lease(gpu)) {
    if (id == lease || memory_.is_aside(id)) continue;
    for (const Bytes fixed : {all, told}) {
      const Bytes needed = h.movable + fixed;
      if (needed <= memory_.capacity(gpu) && needed + more > memory_.capacity(gpu)) return true;
    }
  }
  return false;
}

Bytes ResidencyRules::largest(GpuSlot gpu) const {
  Bytes most;
  for (const auto& [id, h] : memory_.by_lease(gpu)) {
    if (!memory_.is_aside(id)) most = std::max(most, h.movable);
  }
  return most;
}

bool ResidencyRules::host_could_hold(LeaseId lease) const {
  Residency after = memory_;
  after.set_aside(lease, true);
  return HostNeeds(after).reserved() + memory_.oversize() <= memory_.host_budget();
}

bool ResidencyRules::could_come_back(LeaseId lease) const {
  Residency after = memory_;
  after.set_aside(lease, false);
  after.set_parked(lease, false);
  for (std::uint32_t i = 0; i < memory_.gpu_count(); ++i) {
    const GpuSlot gpu{i};
    const Holding own = memory_.of_lease(lease, gpu);
    const bool there = !own.movable.is_zero();
    if (there && !ResidencyRules(after).fits(lease, gpu)) return false;
    const Bytes wired = own.wired + own.wired_unbacked + own.beside;
    if (memory_.is_parked(lease) && takes_from_others(lease, gpu, wired)) return false;
  }
  return host_has_room_for(after);
}

bool ResidencyRules::would_fit(GpuSlot gpu, Bytes capacity) const {
  if (largest(gpu) + memory_.wired(gpu) > capacity) return false;
  Residency after = memory_;
  after.set_capacity(gpu, capacity);
  return HostNeeds(after).reserved() + memory_.oversize() <= memory_.host_budget();
}

GrowAnswer ResidencyRules::check_hosted(TenantId tenant, GpuSlot gpu, Bytes bytes,
                                        Bytes most) const {
  const auto lease = memory_.lease_of(tenant);
  if (!lease) return GrowAnswer::kRefusedLimit;
  const Bytes has = memory_.of_lease(*lease, gpu).hosted;
  return has + bytes <= most ? GrowAnswer::kGranted : GrowAnswer::kRefusedLimit;
}

// Returns the bytes beyond the limit if the GPU can take the other bytes of the growth, and
// otherwise all bytes of the growth. Zero: the lease may not have that many more bytes in host
// memory.
Bytes ResidencyRules::to_host(TenantId tenant, GpuSlot gpu, Bytes bytes, Bytes limit,
                              Bytes most) const {
  const auto lease = memory_.lease_of(tenant);
  if (most.is_zero() || !lease) return {};
  const Holding own = memory_.of_lease(*lease, gpu);
  const Bytes charged = own.movable + own.wired + own.wired_unbacked + own.beside;
  Bytes part = std::min(in_pages(charged + bytes - limit), bytes);
  const bool rest_fits =
      !part.is_zero() && (part == bytes || check_growth(tenant, gpu, bytes - part, false, limit) ==
                                               GrowAnswer::kGranted);
  if (!rest_fits) part = bytes;
  return check_hosted(tenant, gpu, part, most) == GrowAnswer::kGranted ? part : Bytes();
}

}  // namespace gpurota::sched
