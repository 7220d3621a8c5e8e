// Feeds the reckoning of hidden memory (watch/hidden_memory.h) with what leases are charged and
// what the site says is normal, and brings what was measured as normal over a restart. State thread
// only; a part of WatchKeeper.
#pragma once

#include "config/config.h"
#include "daemon/gpus/gpu_states.h"
#include "daemon/gpus/gpu_table.h"
#include "daemon/leases/lease_manager.h"
#include "daemon/tenants/lease_charges.h"
#include "ports/processes.h"
#include "watch/hidden_memory.h"

#include <functional>

namespace gpurota::daemon {

class HiddenReckoner {
 public:
  using ChargeOf = std::function<LeaseCharge(LeaseId, const LeaseGpu&)>;
  // The part of all charges on the GPU that counts memory again, as several leases have it
  // (GrantBook).
  using CountedAgain = std::function<Bytes(const GpuUuid&)>;
  // All must outlive the HiddenReckoner.
  struct Parts {
    const config::Config& config;
    const GpuTable& gpus;
    const LeaseManager& leases;
    GpuStates& states;
    ports::Processes& processes;
    ChargeOf charge_of;          // empty: no lease is charged for anything
    CountedAgain counted_again;  // empty: no memory is in two leases
  };

  explicit HiddenReckoner(Parts parts) : parts_(std::move(parts)) {}

  // Restores the baselines that the last daemon has stored, if the machine was not booted since.
  // Before the first reading.
  void restore();
  // After a reading, once leases are charged by that reading. `settled`: the programs that were
  // connected to the last daemon have come back.
  void read(watch::Reading& reading, bool settled, TimePoint now);
  // A lease has come or gone; `reading` is from before.
  void after_change(watch::Reading& reading, bool settled, TimePoint now);

 private:
  void store_baseline(const watch::Reading& reading);
  // False: nothing is reckoned for it.
  bool prepare(watch::Reading& reading, bool settled) const;
  watch::HiddenRules rules(const GpuUuid& gpu) const;

  Parts parts_;
  watch::HiddenMemory memory_;
};

}  // namespace gpurota::daemon
