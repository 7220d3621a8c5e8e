// The tenants: processes of leases with a limit, connected through libgpurota. State thread only.
//
// Speaks abi/wire.h, keeps each tenant's sockets, page and pidfd, and turns requests of tenants
// into calls of the grant book. Tenants of swap leases are handed to SwapTenants. A tenant that
// breaks the protocol is logged once and disconnected, and is then counted in full until NVML shows
// that its memory is back.
//
// TenantServer handles the life of a tenant, from HELLO until the tenant's memory is back.
// TenantSessions delivers the messages, and TenantServer passes each to the part that handles it.
#pragma once

#include "daemon/leases/automatic_leases.h"
#include "daemon/leases/lease_manager.h"
#include "daemon/tenants/compute_shares.h"
#include "daemon/tenants/held_back.h"
#include "daemon/tenants/latency_pages.h"
#include "daemon/tenants/lease_answers.h"
#include "daemon/tenants/tenant_accounts.h"
#include "daemon/tenants/tenant_admission.h"
#include "daemon/tenants/tenant_neighbours.h"
#include "daemon/tenants/tenant_sessions.h"

#include <functional>
#include <map>
#include <string>

namespace gpurota::daemon {

class TenantServer final {
 public:
  struct Parts {
    ports::EventLoop& loop;
    ports::Processes& processes;
    const LeaseTables& tables;
    LeaseManager& leases;
    lease::GrantBook& grants;
    const config::Config& config;
    UserBudgets& budgets;
    AutomaticLeases& automatic;
    SwapTenants& swap;
    const GpuTable& gpus;
    Samples& samples;
    Attribution& attribution;
    TenantRecords& records;
    TenantRoster& roster;
    // Null: each write is on the disk at once.
    const ports::Durability* durability = nullptr;
    // A tenant can be sent messages from now on.
    std::function<void(const Tenant& tenant)> on_connected{};
    std::function<void(const Tenant& tenant, const gpurota_msg_park_ready& ready)> on_park_ready{};
  };

  explicit TenantServer(Parts parts);

  Result<void> listen(const std::string& path, const ipc::ListenOptions& options) {
    return sessions_.listen(path, options);
  }
  const TenantTable& table() const { return table_; }
  LatencyPages& latency() { return latency_; }
  const HeldBack& held_back() const { return held_back_; }

  // A lease has changed or is gone: updates the pages and the connections.
  void on_lease_change(const LeaseEntry& entry, bool gone);
  bool holds_memory(LeaseId lease) const { return parts_.swap.has_dead(lease); }

  // Call before and after a sample of `gpu`. `outsiders`: by lease, the memory of processes that
  // are not tenants.
  void before_sample(const GpuUuid& gpu) { accounts_.before_sample(gpu); }
  void after_sample(const GpuSample& sample, TimePoint taken,
                    const std::map<LeaseId, Bytes>& outsiders);
  // The sample failed: answers the tenants that wait for it.
  void after_failed_sample(const GpuUuid& gpu) { accounts_.answer_measured(gpu, TimePoint::max()); }

  // Ends the connection of a tenant that does not read. The tenant connects again.
  void hang_up(TenantId id) { sessions_.hang_up(id, kDoesNotRead); }

  // Sends the answers that were held back until their leases were on the disk, where these are on
  // the disk now.
  void on_durability(const ports::Durability::News& news) { answers_.on_durability(news); }

  // For TenantSessions, which reads the sockets.
  // One message of a CALL connection. False: the message breaks the protocol.
  bool on_call(TenantSession& session, const TenantMessage& message);
  // One message of a tenant's event socket. False: the message breaks the protocol.
  bool on_event(Tenant& tenant, const TenantMessage& message);
  // One more piece of the answer to a session's question (has_question()). False: the client does
  // not read the answer.
  bool go_on(TenantSession& session) {
    return session.unsettled ? answers_.go_on(session) : neighbours_.go_on(*session.tenant);
  }
  // The connection ends now.
  void on_closing(TenantSession& session) { answers_.forget(session); }
  // The tenant's connection has ended, and the tenant has not connected again.
  void on_disconnected(Tenant& tenant);

 private:
  bool on_tenants_call(Tenant& tenant, const TenantMessage& message);
  void hello(TenantSession& session, const gpurota_msg_hello& hello);
  Result<Tenant*> add_tenant(TenantSession& session, const gpurota_msg_hello& hello,
                             const LeaseEntry& entry, TenantPlace place);
  void supersede_by(Tenant& newcomer);
  bool welcome(Tenant& tenant, std::uint32_t seq, const Fd& event);
  void on_death(TenantId id);
  void forget_settled();
  void erase(Tenant& tenant);

  Parts parts_;
  TenantTable table_;
  TenantSessions sessions_;
  TenantAdmission admission_;
  TenantAccounts accounts_;
  LeaseAnswers answers_;
  TenantNeighbours neighbours_;
  LatencyPages latency_;
  ComputeShares shares_;
  HeldBack held_back_;
};

}  // namespace gpurota::daemon
