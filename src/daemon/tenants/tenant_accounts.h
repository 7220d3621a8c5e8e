// Connects tenants to the grant book: passes questions of tenants and figures of NVML to the book,
// and its decisions to the tenants. State thread only.
#pragma once

#include "daemon/gpus/samples.h"
#include "daemon/leases/lease_tables.h"
#include "daemon/tenants/tenant_records.h"
#include "daemon/tenants/tenant_roster.h"
#include "daemon/tenants/tenant_sessions.h"
#include "lease/grant_book.h"

#include <map>

namespace gpurota::daemon {

class TenantAccounts {
 public:
  struct Parts {
    ports::EventLoop& loop;
    const LeaseTables& tables;
    lease::GrantBook& grants;
    SwapTenants& swap;
    Samples& samples;
    TenantRecords& records;
    TenantRoster& roster;
    TenantTable& table;
    TenantSessions& sessions;
  };

  explicit TenantAccounts(Parts parts) : parts_(parts) {}

  // Messages of a tenant. False: the tenant breaks the protocol, or does not read its answers.
  bool grow(Tenant& tenant, const gpurota_msg_grow& message);
  bool give_back(Tenant& tenant, const gpurota_msg_return& message);
  bool ask(Tenant& tenant, const gpurota_msg_query& message);
  bool contexts(Tenant& tenant, const gpurota_msg_contexts& message);
  bool holding(Tenant& tenant, const gpurota_msg_holding& message);
  // Call after reading from the tenant's event socket: an earlier QUERY may be answered now.
  void answer_asked(TenantId id);

  // Sends the decisions of the grant book to the tenants.
  void carry_out(const lease::AddressedGrantActions& actions);
  // Asks the grant book again at the time that it names.
  void schedule();
  // Writes the limit and the available memory of the lease to the pages of its tenants.
  void publish(LeaseId lease);

  // Call before a sample of `gpu`: stores the use that tenants report.
  void before_sample(const GpuUuid& gpu);
  // Call after the sample: feeds the grant book. `outsiders`: by lease, the memory of processes
  // that are not tenants.
  void after_sample(const GpuSample& sample, TimePoint taken,
                    const std::map<LeaseId, Bytes>& outsiders);
  // Answers the tenants that have waited since before the sample that began at `taken`.
  void answer_measured(const GpuUuid& gpu, TimePoint taken);

 private:
  bool query(Tenant& tenant, std::uint32_t slot, std::uint32_t seq);
  // The headroom that could be recalled from the lease's tenants except `but`. If `but` is no
  // tenant, the headroom of all.
  Bytes slack(LeaseId lease, const GpuUuid& gpu, TenantId but) const;

  Parts parts_;
  ports::EventLoop::SourcePtr timer_;
};

}  // namespace gpurota::daemon
