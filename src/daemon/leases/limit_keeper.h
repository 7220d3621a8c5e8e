// Carries out what lease/limit_policy.h decides about leases above their soft limit, or above a hard
// limit that was lowered: after each look at a GPU. State thread only.
#pragma once

#include "config/config.h"
#include "daemon/leases/lease_manager.h"
#include "lease/grant_book.h"
#include "lease/limit_policy.h"

#include <functional>
#include <string>
#include <utility>

namespace gpurota::daemon {

class LimitKeeper {
 public:
  struct Parts {
    LeaseManager& leases;
    const lease::GrantBook& grants;
    const config::Config& config;
    // A line for the owner of a lease, where their gpurota run shows it.
    std::function<void(LeaseId, const std::string&)> tell_owner;
    // What a swap lease has there, moved out or not, and what of it was granted. Empty: nothing is
    // known of any.
    std::function<std::pair<Bytes, Bytes>(LeaseId, const GpuUuid&)> swap_charge = {};
  };

  explicit LimitKeeper(Parts parts) : parts_(std::move(parts)) {}

  void after_look(const GpuUuid& gpu, TimePoint now);
  void forget(LeaseId lease) { policy_.forget(lease); }
  // How long each grant above a soft limit is to take.
  static Duration throttle(const config::Config& config);

 private:
  void warn(const GpuUuid& gpu, const lease::LimitAction& action) const;

  Parts parts_;
  lease::LimitPolicy policy_;
};

}  // namespace gpurota::daemon
