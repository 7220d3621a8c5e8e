// Judges additions to a Residency, and changes of it: every lease must still be able to be resident
// on its own, and host memory to hold the rest. Keeps nothing.
#pragma once

#include "sched/residency.h"

namespace gpurota::sched {

class ResidencyRules {
 public:
  explicit ResidencyRules(const Residency& memory) : memory_(memory) {}

  // Whether these bytes may be added at all, whatever is resident now: who asks is judged by its
  // own need, and by what it would take from others. Not by somebody who does not fit anyway since
  // others have grown without asking.
  GrowAnswer check_growth(TenantId tenant, GpuSlot gpu, Bytes bytes, bool wired, Bytes limit) const;
  // The most movable memory that check_growth would admit of the lease now: what its programs are
  // told is free.
  Bytes available(LeaseId lease, GpuSlot gpu, Bytes limit) const;
  // Whether so much more may be in host memory for good, where the lease may have `most`.
  GrowAnswer check_hosted(TenantId tenant, GpuSlot gpu, Bytes bytes, Bytes most) const;
  // Of a growth that was refused: how much of it has to be in host memory. Zero: that would not
  // help.
  Bytes to_host(TenantId tenant, GpuSlot gpu, Bytes bytes, Bytes limit, Bytes most) const;
  // The largest lease, with everyone's wired memory, fits this capacity, and host memory holds the
  // rest.
  bool would_fit(GpuSlot gpu, Bytes capacity) const;
  // Host memory could hold all that the lease has, beside what has to be kept for others.
  bool host_could_hold(LeaseId lease) const;
  // Whether the lease would fit if it were no longer aside, and host memory could still hold all
  // that could be out.
  bool could_come_back(LeaseId lease) const;

 private:
  bool fits(LeaseId lease, GpuSlot gpu) const;
  Bytes largest(GpuSlot gpu) const;     // the most that a lease has which is not aside
  Bytes told_wired(GpuSlot gpu) const;  // of wired memory, what was asked for
  bool host_has_room_for(const Residency& after) const;
  bool takes_from_others(LeaseId lease, GpuSlot gpu, Bytes more) const;

  const Residency& memory_;
};

}  // namespace gpurota::sched
