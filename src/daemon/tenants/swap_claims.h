// Decides how much memory a process is believed to have when it connects as a tenant of a swap
// lease (SWAP_HERE). State thread only.
//
// Nothing is believed that could not be so:
// - a process that this daemon has had as a tenant has at most what it was granted and has not
//   freed;
// - one that was there before this daemon, under a lease that was there too, may have been a tenant
//   of the last: the memory that it reports in host memory is no more than its host memory, and the
//   next samples have to show the memory that it reports on a GPU;
// - every other process was never a tenant, and has nothing.
#pragma once

#include "base/result.h"
#include "daemon/tenants/swap_measures.h"
#include "daemon/tenants/swap_tenant.h"
#include "daemon/tenants/turn_keeper.h"
#include "ports/processes.h"
#include "sched/model.h"

namespace gpurota::daemon {

class SwapClaims {
 public:
  // All must outlive the SwapClaims.
  SwapClaims(ports::Processes& processes, const TurnKeeper& turns, const SwapMeasures& measures)
      : processes_(processes), turns_(turns), measures_(measures) {}

  // `before`: the same process on an earlier connection, if this daemon has had it. Remembers with
  // `tenant` what was believed. An error: the process cannot be looked at now.
  Result<sched::AddTenant> believe(SwapTenant& tenant, const gpurota_msg_swap_here& said,
                                   const SwapTenant* before, TimePoint now) const;

 private:
  sched::TenantMemory bounded_by_limit(const SwapTenant& tenant, std::size_t slot,
                                       const gpurota_msg_swap_here& said,
                                       const SwapTenant* before) const;
  Bytes known_movable(const SwapTenant& before, std::size_t slot) const;

  ports::Processes& processes_;
  const TurnKeeper& turns_;
  const SwapMeasures& measures_;
};

}  // namespace gpurota::daemon
