// Decides how much memory a process is believed to have when it connects as a tenant of a swap
// lease (SWAP_HERE). State thread only.
//
// No process is believed to have more than is possible:
// - a process that was a tenant of this daemon has at most what it was granted and has not freed;
// - a process that is older than this daemon, under a lease that is older too, may have been a
//   tenant of the last daemon: the memory that it reports in host memory is bounded by its host
//   memory, and the next samples must show the memory that it reports on a GPU;
// - any other process was never a tenant, and has nothing.
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

  // `before`: the same process on an earlier connection to this daemon, if there was one. Stores in
  // `tenant` what is believed. An error: the process cannot be inspected now.
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
