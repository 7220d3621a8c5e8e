// Compares the driver's figures for tenants of swap leases with their reports: contexts, memory
// held beside, and memory that they say has moved out. State thread only.
//
// A tenant is believed at first: a sample takes longer than a turn has time for. If samples of it
// at rest show that memory that it moved out is still there, its user is doubted for an hour:
// memory that programs of this user report as moved out is given to nobody before a sample shows
// it.
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
  // All outlive it. `grants`: for what contexts cost.
  SwapMeasures(TurnKeeper& turns, lease::GrantBook& grants, const config::Config& config)
      : turns_(turns), grants_(grants), config_(config) {}

  // The tenant's holding there as turns know it; nothing: not known yet.
  Maybe<const sched::Holding> holding(const SwapTenant& tenant, const SwapMemory& memory) const;
  // The user has been caught; memory that is said to have moved is to be fed as doubted.
  bool doubts(uid_t uid, TimePoint now) const;
  // Only a sample can tell: whether it is gone, what its context takes, or whether memory that it
  // said is out has gone.
  bool expects_sample(const SwapTenant& tenant, const SwapMemory& memory) const;
  // A sample of `gpu` is about to begin.
  void before_sample(SwapTenant& tenant, const GpuUuid& gpu) const;
  // The sample, which began when it was `taken`, is over.
  void measure(SwapTenant& tenant, SwapMemory& memory, const GpuSample& sample, TimePoint taken);
  // The tenant owes an answer, and for as long as work may take to end, the driver, which has
  // listed the tenant before, lists no memory of it there: no work of it is in flight. For a
  // process that was never listed this says nothing, so the answer is false.
  bool has_vanished(const SwapTenant& tenant, SwapMemory& memory, const GpuSample& sample,
                    TimePoint taken) const;
  // Nothing of it is on the GPU.
  void take_off(const SwapTenant& tenant, const SwapMemory& memory);
  // The memory of the process there that was known, or seen, until it reported what it has.
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
  std::map<uid_t, TimePoint> doubted_;  // until then
};

}  // namespace gpurota::daemon
