// Charges of leases in GPU memory, for the reckoning of hidden memory (watch/hidden_memory.h).
// State thread only; changes nothing.
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
  // lease, of which GrantBook::counted_by_several() has the total of all leases.
  LeaseCharge operator()(LeaseId lease, const LeaseGpu& share) const;

 private:
  const lease::GrantBook& grants_;
  const TurnKeeper& turns_;
};

}  // namespace gpurota::daemon
