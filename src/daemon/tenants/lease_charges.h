// Charges of leases in GPU memory, for the reckoning of hidden memory (watch/hidden_memory.h).
// State thread only; changes nothing.
#pragma once

#include "core/lease.h"
#include "daemon/tenants/turn_keeper.h"
#include "lease/grant_book.h"

namespace gpurota::daemon {

struct LeaseCharge {
  Bytes bytes;
  bool moving = false;  // its memory is on its way to the GPU, or from it
};

class LeaseCharges {
 public:
  // Both outlive it.
  LeaseCharges(const lease::GrantBook& grants, const TurnKeeper& turns)
      : grants_(grants), turns_(turns) {}

  // Zero of a whole GPU. Without what is evicted; with what the lease has imported from another,
  // which GrantBook::counted_by_several tells of all leases together.
  LeaseCharge operator()(LeaseId lease, const LeaseGpu& share) const;

 private:
  const lease::GrantBook& grants_;
  const TurnKeeper& turns_;
};

}  // namespace gpurota::daemon
