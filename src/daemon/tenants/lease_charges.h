// The charges of leases for memory on their GPUs, by which hidden memory is computed
// (watch/hidden_memory.h). State thread only; changes nothing.
#pragma once

#include "core/lease.h"
#include "daemon/tenants/turn_keeper.h"
#include "lease/grant_book.h"

namespace gpurota::daemon {

struct LeaseCharge {
  Bytes bytes;
  bool moving = false;  // memory is being moved to or from the GPU
};

class LeaseCharges {
 public:
  // Both must outlive the LeaseCharges.
  LeaseCharges(const lease::GrantBook& grants, const TurnKeeper& turns)
      : grants_(grants), turns_(turns) {}

  // Zero for a whole GPU. Does not include evicted memory. Includes memory imported from another
  // lease, so the sum over all leases counts such memory more than once
  // (GrantBook::counted_by_several()).
  LeaseCharge operator()(LeaseId lease, const LeaseGpu& share) const;

 private:
  const lease::GrantBook& grants_;
  const TurnKeeper& turns_;
};

}  // namespace gpurota::daemon
