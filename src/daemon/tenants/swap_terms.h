// The terms that are sent to tenants of swap leases: their present shares of host memory, and
// whether they take turns. Pure; state thread only.
//
// Each tenant gets a share of the pinned budget according to the tenant's need. The need is the
// part of the tenant's memory that is likely to move. While memory moves, the shares that were sent
// stay.
#pragma once

#include "abi/wire.h"
#include "config/config.h"
#include "daemon/tenants/swap_tenant.h"
#include "daemon/tenants/turn_keeper.h"
#include "daemon/users/users.h"

#include <map>
#include <vector>

namespace gpurota::daemon {

class SwapTerms {
 public:
  struct Parts {
    const TurnKeeper& turns;
    const config::Config& config;
    const Users& users;
  };

  // Computes the terms of the present `tenants`. All must outlive the SwapTerms.
  SwapTerms(Parts parts, const SwapTenantMap& tenants, TimePoint now);
  // `tenant` must be known to turns and connected.
  gpurota_msg_swap_terms of(const SwapTenant& tenant) const;
  // The part of its memory that may have to move before long.
  Bytes likely_to_move(const SwapTenant& tenant) const { return likely_.at(tenant.id); }

 private:
  std::map<LeaseId, Bytes> what_tenants_may_keep() const;
  std::map<TenantId, Bytes> what_tenants_may_pin() const;
  std::vector<Bytes> needs_to_pin(const std::vector<const SwapTenant*>& tenants) const;
  bool moves_before_long(const SwapTenant& tenant) const;
  std::map<TenantId, Bytes> likely_to_move() const;

  Parts parts_;
  std::vector<const SwapTenant*> connected_;
  std::map<LeaseId, std::uint64_t> of_lease_;
  std::map<LeaseId, bool> takes_turns_;
  std::map<LeaseId, Bytes> keeps_;
  std::map<TenantId, Bytes> likely_;  // to move
  std::map<TenantId, Bytes> pins_;
};

bool is_same(const gpurota_msg_swap_terms& a, const gpurota_msg_swap_terms& b);

}  // namespace gpurota::daemon
