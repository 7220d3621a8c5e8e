// Answers a tenant's questions about other processes: which of them are in its lease, and which
// share memory with it. State thread only.
#pragma once

#include "daemon/leases/attribution.h"
#include "daemon/leases/lease_tables.h"
#include "daemon/tenants/swap_tenants.h"
#include "daemon/tenants/tenant_table.h"
#include "ports/event_loop.h"

namespace gpurota::daemon {

class TenantNeighbours {
 public:
  struct Parts {
    ports::EventLoop& loop;
    const LeaseTables& tables;
    const SwapTenants& swap;
    Attribution& attribution;
    const TenantTable& table;
  };

  explicit TenantNeighbours(Parts parts) : parts_(parts), since_(parts_.loop.now()) {}

  // Messages of a tenant. False: the tenant breaks the protocol, or does not read its answers. A
  // process that nobody has asked about yet costs several reads of /proc, so members() answers in
  // pieces: the rest is in the session's `unanswered`, for go_on().
  bool members(Tenant& tenant, const gpurota_msg_processes& message);
  bool go_on(Tenant& tenant);
  bool open(Tenant& tenant, const gpurota_msg_open& message);

 private:
  std::uint32_t bring_together(Tenant& opener, const gpurota_msg_open& message, Fd* end,
                               bool* own_lease);

  Parts parts_;
  const TimePoint since_;
};

}  // namespace gpurota::daemon
