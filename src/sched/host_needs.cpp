#include "sched/host_needs.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace gpurota::sched {

// Adds two pieces to the deficit: orders are of whole pieces, and the last block of an order moves
// whole. Evictions under way count, because they cannot be called back.
void HostNeeds::add_reserved(GpuSlot gpu, std::map<LeaseId, Bytes>* sums) const {
  const Bytes lacking = memory_.deficit(gpu);
  for (const auto& [lease, h] : memory_.by_lease(gpu)) {
    Bytes at_most = lacking.is_zero()
                        ? Bytes()
                        : std::min(h.movable, lacking + memory_.piece() + memory_.piece());
    if (memory_.is_aside(lease)) at_most = h.movable;
    (*sums)[lease] += std::max(h.out() + h.leaving, at_most);
  }
}

std::map<LeaseId, Bytes> HostNeeds::reserved_by_lease() const {
  std::map<LeaseId, Bytes> sums;
  for (std::uint32_t i = 0; i < memory_.gpu_count(); ++i) add_reserved(GpuSlot{i}, &sums);
  return sums;
}

Bytes HostNeeds::reserved() const {
  Bytes sum;
  for (const auto& [lease, bytes] : reserved_by_lease()) sum += bytes;
  return sum;
}

Bytes HostNeeds::out_now() const {
  Bytes sum;
  for (const auto& [id, tenant] : memory_.tenants()) {
    for (const Holding& h : tenant.gpus) sum += h.out();
  }
  return sum;
}

Bytes HostNeeds::left_for_moves() const {
  Bytes taken = memory_.oversize();
  for (const auto& [id, tenant] : memory_.tenants()) {
    for (const Holding& h : tenant.gpus) {
      taken += h.out() + h.leaving;
      if (!h.leaving.is_zero()) taken += std::min(h.resident - h.leaving, memory_.piece());
    }
  }
  return memory_.host_budget() - taken;
}

Bytes HostNeeds::left() const { return memory_.host_budget() - memory_.oversize() - reserved(); }

LikelyToMove::LikelyToMove(const Residency& memory) : memory_(memory) {
  for (std::uint32_t i = 0; i < memory.gpu_count(); ++i) {
    const GpuSlot gpu(i);
    const std::uint64_t tenth = memory.capacity(gpu).count() / 10;
    const Bytes wanted = memory.wanted(gpu);
    const bool goes_on =
        !memory.is_lost(gpu) && wanted > Bytes(7 * tenth) && is_shared(memory, gpu);
    gpus_.push_back({wanted - memory.capacity(gpu) + Bytes(2 * tenth),
                     goes_on && wanted > Bytes(8 * tenth), goes_on});
  }
}

Bytes LikelyToMove::of(TenantId tenant, bool was_pinned) const {
  Bytes likely;
  for (std::uint32_t i = 0; i < gpus_.size(); ++i) {
    if (was_pinned ? !gpus_[i].goes_on : !gpus_[i].starts) continue;
    likely += std::min(memory_.at(tenant, GpuSlot(i)).movable, gpus_[i].most);
  }
  return likely;
}

std::vector<Bytes> divide_by_need(Bytes whole, const std::vector<Bytes>& needs) {
  std::vector<std::size_t> by_need(needs.size());
  std::iota(by_need.begin(), by_need.end(), std::size_t{0});
  std::stable_sort(by_need.begin(), by_need.end(),
                   [&](std::size_t a, std::size_t b) { return needs[a] < needs[b]; });
  std::vector<Bytes> parts(needs.size());
  for (std::size_t i = 0; i < by_need.size(); ++i) {
    const Bytes even(whole.count() / (by_need.size() - i));
    parts[by_need[i]] = std::min(needs[by_need[i]], even);
    whole -= parts[by_need[i]];
  }
  if (parts.empty()) return parts;
  const Bytes left(whole.count() / parts.size());
  for (Bytes& part : parts) part += left;
  return parts;
}

}  // namespace gpurota::sched
