// What the driver counts of tenants of swap leases, beside what they say: contexts, memory held
// beside, and memory that they say has moved out. State thread only.
//
// A tenant is believed at first: a look takes longer than a turn has time for. If looks at it at
// rest show that what it moved out is still there, its user is doubted for an hour: whatever
// programs of this user say is out, nobody gets the room before a look.
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

  // What turns know of it there; nothing: nothing yet.
  Maybe<const sched::Holding> holding(const SwapTenant& tenant, const SwapMemory& memory) const;
  // The user has been caught; what is said to have moved is to be fed as doubted.
  bool doubts(uid_t uid, TimePoint now) const;
  // Only a look can tell: whether it is gone, what its context takes, or whether memory that it
  // said is out has gone.
  bool expects_sample(const SwapTenant& tenant, const SwapMemory& memory) const;
  // A look at `gpu` is about to begin.
  void before_sample(SwapTenant& tenant, const GpuUuid& gpu) const;
  // The look, which began when it was `taken`, is over.
  void measure(SwapTenant& tenant, SwapMemory& memory, const GpuSample& sample, TimePoint taken);
  // It owes an answer, and for as long as work may take to end the driver, which has listed it,
  // lists no memory of it there: nothing of it is in flight. Of a process that was never listed
  // that says nothing.
  bool has_vanished(const SwapTenant& tenant, SwapMemory& memory, const GpuSample& sample,
                    TimePoint taken) const;
  // Nothing of it is on the GPU.
  void take_off(const SwapTenant& tenant, const SwapMemory& memory);
  // What was known, or seen, of the process there until it said what it has.
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
