// What tenants of swap leases are told of host memory and turns: their shares, as things are. Pure;
// state thread only.
#pragma once

#include "abi/wire.h"
#include "config/config.h"
#include "daemon/tenants/swap_tenant.h"
#include "daemon/tenants/turn_keeper.h"
#include "daemon/users/users.h"

#include <map>

namespace gpurota::daemon {

class SwapTerms {
 public:
  struct Parts {
    const TurnKeeper& turns;
    const config::Config& config;
    const Users& users;
  };

  // For the tenants there are now; all outlive it.
  SwapTerms(Parts parts, const SwapTenantMap& tenants);
  // Of one that is here and connected.
  gpurota_msg_swap_terms of(const SwapTenant& tenant, TimePoint now) const;

 private:
  std::map<LeaseId, Bytes> what_tenants_may_keep() const;

  Parts parts_;
  int connected_ = 0;
  std::map<uid_t, int> of_user_;
  std::map<LeaseId, std::uint64_t> of_lease_;
  std::map<LeaseId, Bytes> keeps_;
};

bool is_same(const gpurota_msg_swap_terms& a, const gpurota_msg_swap_terms& b);

}  // namespace gpurota::daemon
