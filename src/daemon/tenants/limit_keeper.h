// After each sample of a GPU, carries out what lease/limit_policy.h decides about leases above
// their soft limit, or above a hard limit that was lowered. State thread only.
#pragma once

#include "config/config.h"
#include "daemon/leases/lease_manager.h"
#include "daemon/leases/owners.h"
#include "daemon/tenants/turn_keeper.h"
#include "lease/grant_book.h"
#include "lease/limit_policy.h"

namespace gpurota::daemon {

class LimitKeeper final {
 public:
  struct Parts {
    const LeaseTables& tables;
    LeaseManager& leases;
    const lease::GrantBook& grants;
    const config::Config& config;
    Owners& owners;
    const TurnKeeper& turns;  // what swap leases have
  };

  explicit LimitKeeper(Parts parts) : parts_(std::move(parts)) {}

  void after_sample(const GpuUuid& gpu, TimePoint now);
  void on_lease_change(const LeaseEntry& entry, bool gone);
  // The delay of each grant above a soft limit.
  static Duration throttle(const config::Config& config);

 private:
  void warn(const GpuUuid& gpu, const lease::LimitAction& action) const;

  Parts parts_;
  lease::LimitPolicy policy_;
};

}  // namespace gpurota::daemon
