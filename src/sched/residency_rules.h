// Checks additions to a Residency, and changes of it: every lease must still be able to be resident
// on its own, and host memory must be able to hold the rest. Holds no state.
#pragma once

#include "sched/residency.h"

namespace gpurota::sched {

class ResidencyRules {
 public:
  explicit ResidencyRules(const Residency& memory) : memory_(memory) {}

  // Whether these bytes may be added at all, whatever is resident now. The lease must fit with its
  // own need, and must not take room that others need. Leases that already do not fit, because
  // memory has grown without a request, are no reason to refuse.
  GrowAnswer check_growth(TenantId tenant, GpuSlot gpu, Bytes bytes, bool wired, Bytes limit) const;
  // The most movable memory that check_growth() would admit for the lease now. Its programs see
  // this as free memory.
  Bytes available(LeaseId lease, GpuSlot gpu, Bytes limit) const;
  // Whether a tenant's request for `bytes` of host memory, to be kept there for good, may be
  // granted. `most`: how much of such memory the tenant's lease may have for this GPU.
  GrowAnswer check_hosted(TenantId tenant, GpuSlot gpu, Bytes bytes, Bytes most) const;
  // How much of a refused growth has to be in host memory so that the rest of the growth fits.
  // `most` as in check_hosted(). Zero: no part would help.
  Bytes to_host(TenantId tenant, GpuSlot gpu, Bytes bytes, Bytes limit, Bytes most) const;
  // Whether the largest lease and all wired memory fit this capacity, and host memory can hold the
  // rest.
  bool would_fit(GpuSlot gpu, Bytes capacity) const;
  // Whether host memory could hold all memory of the lease, beside what has to be kept for others.
  bool host_could_hold(LeaseId lease) const;
  // Whether the lease would fit if it were neither aside nor parked, and host memory could still
  // hold all that could be evicted. The memory of a parked lease that cannot be moved must not take
  // room that others need.
  bool could_come_back(LeaseId lease) const;

 private:
  bool fits(LeaseId lease, GpuSlot gpu) const;
  Bytes largest(GpuSlot gpu) const;     // the most of one lease, except leases put aside
  Bytes told_wired(GpuSlot gpu) const;  // the wired memory that was asked for
  bool host_has_room_for(const Residency& after) const;
  bool takes_from_others(LeaseId lease, GpuSlot gpu, Bytes more) const;

  const Residency& memory_;
};

}  // namespace gpurota::sched
