// Feeds the reckoning of hidden memory (watch/hidden_memory.h) with the charges of leases and the
// use that the configuration states as normal, and stores the measured baselines for the next
// daemon. State thread only; a part of WatchKeeper.
#pragma once

#include "config/config.h"
#include "daemon/gpus/gpu_states.h"
#include "daemon/gpus/gpu_table.h"
#include "daemon/leases/lease_tables.h"
#include "daemon/tenants/lease_charges.h"
#include "ports/processes.h"
#include "watch/hidden_memory.h"

#include <functional>

namespace gpurota::daemon {

class HiddenReckoner {
 public:
  using ChargeOf = std::function<LeaseCharge(LeaseId, const LeaseGpu&)>;
  // How much of the sum of all charges on the GPU is counted more than once, because several leases
  // share the memory (GrantBook).
  using CountedAgain = std::function<Bytes(const GpuUuid&)>;
  // All must outlive the HiddenReckoner.
  struct Parts {
    const config::Config& config;
    const GpuTable& gpus;
    const LeaseTables& tables;
    GpuStates& states;
    ports::Processes& processes;
    ChargeOf charge_of;          // empty: no lease is charged for anything
    CountedAgain counted_again;  // empty: no memory is in two leases
  };

  explicit HiddenReckoner(Parts parts) : parts_(std::move(parts)) {}

  // Restores the baselines that the last daemon has stored, if the machine has not been rebooted
  // since. Call before the first reading.
  void restore();
  // Call after each reading, when leases are charged by that reading. `settled`: the programs that
  // were connected to the last daemon have connected again.
  void read(watch::Reading& reading, bool settled, TimePoint now);
  // Call when a lease was made or has ended. `reading` is of a sample from before that change.
  void after_change(watch::Reading& reading, bool settled, TimePoint now);

 private:
  void store_baseline(const watch::Reading& reading);
  // False: hidden memory is not reckoned for this GPU.
  bool prepare(watch::Reading& reading, bool settled) const;
  watch::HiddenRules rules(const GpuUuid& gpu) const;

  Parts parts_;
  watch::HiddenMemory memory_;
};

}  // namespace gpurota::daemon
