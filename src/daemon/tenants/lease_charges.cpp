#include "daemon/tenants/lease_charges.h"

namespace gpurota::daemon {

LeaseCharge LeaseCharges::operator()(LeaseId lease, const LeaseGpu& share) const {
  if (!share.swap) {
    const lease::Account* const account = grants_.find(lease, share.uuid).if_there();
    return {account ? account->charged() : Bytes(), false};
  }
  const sched::Holding held = turns_.holding(lease, share.uuid);
  const Bytes there = held.resident + held.coming + held.wired + held.beside + held.lingering;
  const bool grows = !held.unbacked.is_zero() || !held.wired_unbacked.is_zero();
  return {there, grows || !held.coming.is_zero() || !held.leaving.is_zero()};
}

}  // namespace gpurota::daemon
