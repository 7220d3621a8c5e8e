// Decides which process may become a tenant of which lease (HELLO). State thread only.
#pragma once

#include "abi/wire.h"
#include "base/result.h"
#include "config/config.h"
#include "daemon/gpus/gpu_table.h"
#include "daemon/leases/lease_tables.h"
#include "daemon/tenants/tenant_table.h"

namespace gpurota::daemon {

class TenantAdmission {
 public:
  struct Parts {
    const LeaseTables& tables;
    const config::Config& config;
    UserBudgets& budgets;
    const GpuTable& gpus;
    const TenantTable& table;
  };

  explicit TenantAdmission(Parts parts) : parts_(parts) {}

  // Which lease the connection may be in: GPUROTA_OK and `entry`, or the code of a refusal.
  std::uint32_t admit(const TenantSession& session, const gpurota_msg_hello& hello,
                      const LeaseEntry*& entry) const;
  // The budgets that the tenant takes. kLimit: the lease or its user already has as many tenants as
  // are allowed, or the lease is parked.
  Result<TenantPlace> place_for(const TenantSession& session, const gpurota_msg_hello& hello,
                                const LeaseEntry& entry);

 private:
  bool comes_back(const Lease& lease, const gpurota_msg_hello& hello,
                  const ports::ProcessId& process) const;
  bool crowded(LeaseId lease, const ports::ProcessId& newcomer) const;

  Parts parts_;
};

}  // namespace gpurota::daemon
