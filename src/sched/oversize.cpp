// What leases have in host memory for good, since a GPU is too small for it: parts of residency.cpp and turns.cpp.
#include "sched/turns.h"

namespace gpurota::sched {
namespace {

// What tenants map: less than a page of memory is not to be had.
constexpr Bytes kPage = mib(2);

Bytes in_pages(Bytes bytes) {
  return Bytes((bytes + kPage - Bytes(1)).count() / kPage.count() * kPage.count());
}

}  // namespace

void Residency::set_oversize(LeaseId lease, Bytes bytes) {
  bytes.is_zero() ? void(oversize_.erase(lease)) : void(oversize_[lease] = bytes);
}

Bytes Residency::oversize() const {
  Bytes sum;
  for (const auto& [lease, bytes] : oversize_) sum += bytes;
  return sum;
}

Bytes Residency::host_left() const { return host_budget_ - oversize() - host_reserved(); }

GrowAnswer Residency::check_hosted(TenantId tenant, GpuSlot gpu, Bytes bytes, Bytes most) const {
  const auto found = tenants_.find(tenant);
  if (found == tenants_.end()) return GrowAnswer::kRefusedLimit;
  const Bytes has = of_lease(found->second.lease, gpu).hosted;
  return has + bytes <= most ? GrowAnswer::kGranted : GrowAnswer::kRefusedLimit;
}

// What is beyond the limit; all of it, if the rest has no room for another reason.
Bytes Residency::to_host(TenantId tenant, GpuSlot gpu, Bytes bytes, Bytes limit, Bytes most) const {
  const auto found = tenants_.find(tenant);
  if (most.is_zero() || found == tenants_.end()) return {};
  const Holding own = of_lease(found->second.lease, gpu);
  const Bytes charged = own.movable + own.wired + own.wired_unbacked + own.beside;
  Bytes part = std::min(in_pages(charged + bytes - limit), bytes);
  const bool rest_fits =
      !part.is_zero() && (part == bytes || check_growth(tenant, gpu, bytes - part, false, limit) ==
                                               GrowAnswer::kGranted);
  if (!rest_fits) part = bytes;
  return check_hosted(tenant, gpu, part, most) == GrowAnswer::kGranted ? part : Bytes();
}

Result<void> Turns::admit_oversize(const LeaseTerms& terms) const {
  Bytes wanted;
  for (const LeaseTerms::Gpu& gpu : terms.gpus) wanted += gpu.oversize;
  const Bytes left = memory_.host_left();
  if (wanted <= left) return {};
  return fail(Code::kLimit, to_string(wanted) + " of host memory is needed, and " +
                                to_string(left) + " can be reserved now (of " +
                                to_string(settings_.host_budget) +
                                " for all swap leases); ask for less");
}

void Turns::grow_hosted(const Grow& event, GpuSlot gpu, Bytes most) {
  const GrowAnswer answer = memory_.check_hosted(event.tenant, gpu, event.bytes, most);
  if (answer == GrowAnswer::kGranted) memory_.at(event.tenant, gpu).hosted += event.bytes;
  actions_.push_back(AnswerGrow{event.tenant, event.gpu, event.seq, answer});
}

}  // namespace gpurota::sched
