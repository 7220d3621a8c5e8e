// The tenants' side of the grant book: what they ask, what it decided, what NVML shows. State
// thread only.
#pragma once

#include "daemon/gpus/samples.h"
#include "daemon/leases/lease_manager.h"
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
    LeaseManager& leases;
    lease::GrantBook& grants;
    SwapTenants& swap;
    Samples& samples;
    TenantRecords& records;
    TenantRoster& roster;
    TenantTable& table;
    TenantSessions& sessions;
  };

  explicit TenantAccounts(Parts parts) : parts_(parts) {}

  // Messages of a tenant. False: it breaks the protocol, or does not read its answers.
  bool grow(Tenant& tenant, const gpurota_msg_grow& message);
  bool give_back(Tenant& tenant, const gpurota_msg_return& message);
  bool ask(Tenant& tenant, const gpurota_msg_query& message);
  bool contexts(Tenant& tenant, const gpurota_msg_contexts& message);
  bool holding(Tenant& tenant, const gpurota_msg_holding& message);
  // Something was read from its event socket: what it has asked before may be answered now.
  void answer_asked(TenantId id);

  // Says to tenants what the grant book decided.
  void carry_out(const lease::AddressedGrantActions& actions);
  // Asks the grant book again when it wants to be asked.
  void schedule();
  // Writes onto the pages of the lease's tenants what they may have.
  void publish(LeaseId lease);

  // Before a sample of `gpu`: remembers what the tenants say they use.
  void before_sample(const GpuUuid& gpu);
  // After it: feeds the grant book. `outsiders` by lease: held by processes that are no tenants.
  void after_sample(const GpuSample& sample, TimePoint taken,
                    const std::map<LeaseId, Bytes>& outsiders);
  // Answers those who wait for a sample that was begun at `taken`.
  void answer_measured(const GpuUuid& gpu, TimePoint taken);

 private:
  bool query(Tenant& tenant, std::uint32_t slot, std::uint32_t seq);
  // The slack that others of the lease hold and the lease could call back; but of nobody: all have.
  Bytes slack(LeaseId lease, const GpuUuid& gpu, TenantId but) const;

  Parts parts_;
  ports::EventLoop::SourcePtr timer_;
};

}  // namespace gpurota::daemon
