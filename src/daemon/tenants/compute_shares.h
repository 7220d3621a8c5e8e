// Decides which slices divide the compute time of a GPU, and tells their processes: on a GPU with a
// lease that has a share, all leases with shares or upper bounds are parties of their own, and all
// other slices with this GPU alone are one more party together. If no lease has a share, only
// leases with upper bounds are parties. Interactive leases, parked ones and leases with several
// GPUs take no part. State thread only.
#pragma once

#include "daemon/leases/lease_tables.h"
#include "daemon/tenants/compute_divider.h"
#include "daemon/tenants/tenant_table.h"

#include <map>
#include <optional>
#include <set>
#include <vector>

namespace gpurota::daemon {

class ComputeShares {
 public:
  ComputeShares(const LeaseTables& leases, const TenantTable& tenants)
      : leases_(leases), tenants_(tenants) {}

  // Call when a lease has changed, and when a tenant has connected, disconnected or died.
  void refresh() { refresh(std::nullopt); }
  // Call before a tenant is erased.
  void forget(const Tenant& tenant);
  // Sends again what a tenant has not taken because its socket was full.
  void retry();
  // The last minute of the lease's work; nothing: the lease does not divide a GPU with others.
  std::optional<LastMinute> last_minute(LeaseId lease) const { return divider_.last_minute(lease); }

 private:
  struct Party {
    LeaseId lease;  // 0: the slices without a share and without a bound
    ComputeShare share;
    int percent = 0;  // its part of the time
    std::vector<TenantId> tenants;
    bool operator==(const Party&) const = default;
  };
  using Parties = std::map<GpuUuid, std::vector<Party>>;

  static void set_parts(std::vector<Party>& parties, int plain);
  void refresh(std::optional<TenantId> without);
  Parties parties(std::optional<TenantId> without) const;
  void tell(const std::set<TenantId>& wanted);
  bool divide(const Parties& parties);

  const LeaseTables& leases_;
  const TenantTable& tenants_;
  Parties parties_;
  std::set<TenantId> told_;  // tenants that submit work in windows only
  bool unsent_ = false;      // a message was not taken
  ComputeDivider divider_;
};

}  // namespace gpurota::daemon
