// What the driver counts of tenants of swap leases, beside what they say: contexts, and memory held beside. State thread only.
#pragma once

#include "base/maybe.h"
#include "daemon/tenants/swap_tenant.h"
#include "daemon/tenants/turn_keeper.h"
#include "lease/grant_book.h"

#include <optional>

namespace gpurota::daemon {

class SwapMeasures {
 public:
  // Both outlive it. `grants`: for what contexts cost.
  SwapMeasures(TurnKeeper& turns, lease::GrantBook& grants) : turns_(turns), grants_(grants) {}

  // What turns know of it there; nothing: nothing yet.
  Maybe<const sched::Holding> holding(const SwapTenant& tenant, const SwapMemory& memory) const;
  // A look at `gpu` is about to begin.
  void before_look(SwapTenant& tenant, const GpuUuid& gpu) const;
  // The look, which began when it was `taken`, is over.
  void measure(SwapTenant& tenant, SwapMemory& memory, const GpuSample& sample, TimePoint taken);

 private:
  std::optional<Bytes> told(const SwapTenant& tenant, const SwapMemory& memory) const;
  void measure_context(SwapTenant& tenant, SwapMemory& memory, Bytes held);
  void settle_contexts(SwapTenant& tenant, SwapMemory& memory, Bytes takes);

  TurnKeeper& turns_;
  lease::GrantBook& grants_;
};

}  // namespace gpurota::daemon
