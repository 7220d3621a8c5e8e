// Compares the driver's figures for tenants of swap leases with their reports: contexts, memory
// held beside the reported memory, and memory that they report as moved out. State thread only.
//
// A tenant is believed at first, because a turn has no time to wait for a sample. If samples still
// show memory that a tenant has reported as moved out, and none of the tenant's memory is being
// moved, the tenant's user is doubted for an hour: memory that this user's programs report as moved
// out is given to nobody before a sample shows that the memory is free.
#pragma once

#include "base/maybe.h"
#include "config/config.h"
#include "daemon/tenants/swap_tenant.h"
#include "daemon/tenants/turn_keeper.h"
#include "lease/grant_book.h"

#include <map>
#include <optional>

#include <sys/types.h>

namespace gpurota::daemon {

class SwapMeasures {
 public:
  // All must outlive the SwapMeasures. `grants`: for the costs of contexts.
  SwapMeasures(TurnKeeper& turns, lease::GrantBook& grants, const config::Config& config)
      : turns_(turns), grants_(grants), config_(config) {}

  // The tenant's holding on that GPU as turns know it. Empty: not known yet.
  Maybe<const sched::Holding> holding(const SwapTenant& tenant, const SwapMemory& memory) const;
  // Whether the user is doubted. If so, a report of moved memory must be marked as doubted when it
  // is fed to the turns (sched::Evicted).
  bool doubts(uid_t uid, TimePoint now) const;
  // Whether the daemon needs a sample to know if the tenant's process has gone, how large its
  // context is, or if memory that it reported as moved out has gone.
  bool expects_sample(const SwapTenant& tenant, const SwapMemory& memory) const;
  // A sample of `gpu` is about to begin.
  void before_sample(SwapTenant& tenant, const GpuUuid& gpu) const;
  // The sample, which began at `taken`, is over.
  void measure(SwapTenant& tenant, SwapMemory& memory, const GpuSample& sample, TimePoint taken);
  // Whether a tenant that owes an answer has no work in flight on the GPU. True once the driver has
  // listed no memory of the process for as long as work may take to end. False for a process that
  // was never listed, as the list then proves nothing.
  bool has_vanished(const SwapTenant& tenant, SwapMemory& memory, const GpuSample& sample,
                    TimePoint taken) const;
  // Removes the tenant from the GPU: none of its memory is left there.
  void take_off(const SwapTenant& tenant, const SwapMemory& memory);
  // How much memory a process that has not reported yet has on that GPU. `before`: the tenant that
  // the process was on its earlier connection, or null. The figure is what turns know of `before`;
  // if they know nothing of that tenant, the figure is from the last sample.
  Bytes seen_before(const SwapTenant& tenant, const SwapTenant* before,
                    const SwapMemory& memory) const;

 private:
  void check_return(const SwapTenant& tenant, SwapMemory& memory, const GpuSample& sample,
                    Bytes told_least);
  std::optional<Bytes> told(const SwapTenant& tenant, const SwapMemory& memory) const;
  bool is_doubted(const SwapTenant& tenant, const SwapMemory& memory) const;
  void settle_beside(SwapTenant& tenant, SwapMemory& memory, Bytes unexplained);
  void check_claims(const SwapTenant& tenant, SwapMemory& memory, Bytes unexplained,
                    TimePoint taken);
  void confirm(const SwapTenant& tenant, SwapMemory& memory, Bytes unexplained, TimePoint taken);
  void doubt(const SwapTenant& tenant, const SwapMemory& memory, TimePoint now);
  void measure_context(SwapTenant& tenant, SwapMemory& memory, Bytes held);
  void settle_contexts(SwapTenant& tenant, SwapMemory& memory, Bytes takes);

  TurnKeeper& turns_;
  lease::GrantBook& grants_;
  const config::Config& config_;
  std::map<uid_t, TimePoint> doubted_;  // until this time
};

}  // namespace gpurota::daemon
