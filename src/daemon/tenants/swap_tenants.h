// The tenants of swap leases: translates the messages of abi/wire_swap.h into events of
// sched/turns.h, and its actions into messages. State thread only; TenantServer owns the sockets
// and passes on what comes over them.
//
// A tenant is believed only as far as its reports can be true: SwapClaims bounds the memory that it
// claims, reports of moves are bounded by the orders, and answers by the questions. A message that
// breaks these rules ends the connection. After the end of the connection, the process counts with
// the memory that it was last known to have, until the driver no longer lists it.
//
//   welcome ──► here (SWAP_HERE) ──► disconnected ──► superseded by the same process, or dead
//                  └ stopped ◄► answers (watched while an order of ours is not carried out)
//   dead ──► gone: no GPU lists the process any more
#pragma once

#include "abi/wire.h"
#include "core/gpu.h"
#include "daemon/gpus/samples.h"
#include "daemon/tenants/swap_claims.h"
#include "daemon/tenants/swap_measures.h"
#include "daemon/tenants/swap_reach.h"
#include "daemon/tenants/swap_tenant.h"
#include "daemon/tenants/tenant_messages.h"
#include "daemon/tenants/tenant_records.h"
#include "daemon/tenants/turn_keeper.h"
#include "lease/grant_book.h"
#include "ports/event_loop.h"
#include "ports/processes.h"

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace gpurota::daemon {

class TenantSessions;

class SwapTenants final {
 public:
  struct Parts {
    ports::EventLoop& loop;
    ports::Processes& processes;
    TurnKeeper& turns;
    lease::GrantBook& grants;  // for the costs of contexts
    const config::Config& config;
    const Users& users;
    Samples& samples;
    TenantRecords& records;
  };

  explicit SwapTenants(Parts parts);
  // Call before the first tenant is added. `sessions` must outlive the SwapTenants.
  void set_sessions(TenantSessions& sessions) { sessions_ = &sessions; }

  // Adds a tenant whose HELLO was valid. `held`: the memory that it holds, as HELLO says.
  void add(TenantId id, const Lease& lease, const ports::ProcessId& process,
           const std::vector<lease::HeldMemory>& held);
  // One message from the tenant's event socket. False: the message breaks the protocol.
  bool take(TenantId id, const TenantMessage& message);
  void on_writable(TenantId id);
  void on_disconnect(TenantId id);
  void on_death(pid_t pid);
  // The tenant has reported on the call socket how many contexts it has now.
  void on_contexts(TenantId id, const GpuUuid& gpu, int contexts);
  void carry_out(const sched::Actions& actions);
  void on_lease_change(const Lease& lease);
  void on_lease_gone(LeaseId lease);
  // The limits of a lease have changed, or the configuration.
  void update_terms();

  void before_sample(const GpuUuid& gpu);
  void after_sample(const GpuSample& sample, TimePoint taken);

  // The size of the GPU as a process of the lease sees it, and how much of that is left.
  struct Figures {
    Bytes limit, available;
  };
  Figures figures(LeaseId lease, const GpuUuid& gpu) const;
  bool has_dead(LeaseId lease) const;
  HostPins pins_of(LeaseId lease) const;
  // Whether something on this GPU waits for the next sample.
  bool expects_sample(const GpuUuid& gpu) const;
  pid_t pid_of(TenantId id) const;
  // Null: there is none.
  const SwapTenant* find(TenantId id) const { return const_cast<SwapTenants*>(this)->find(id); }
  // The user's process that has sent this key (gpurota_msg_swap_here). `away`: the process lives,
  // and its connection has ended.
  struct Owner {
    std::optional<TenantId> tenant;
    bool away = false;
  };
  Owner find_owner(std::span<const std::uint64_t, 2> key, uid_t uid) const;
  // Whether the process is a tenant here: either the turns count its memory already, or
  // is_about_to_tell() is true of it.
  bool counts(pid_t pid) const;
  // Whether the process has connected and not yet reported its memory.
  bool is_about_to_tell(pid_t pid) const;

 private:
  using Memory = SwapMemory;
  using Question = SwapQuestion;
  using Tenant = SwapTenant;

  Tenant* find(TenantId id) {
    const auto it = tenants_.find(id);
    return it == tenants_.end() ? nullptr : it->second.get();
  }
  bool on(Tenant& tenant, const gpurota_msg_swap_here& message);
  bool on(Tenant& tenant, const gpurota_msg_swap_grow& message);
  bool on(Tenant& tenant, const gpurota_msg_swap_shrink& message);
  bool on(Tenant& tenant, const gpurota_msg_swap_status& message);
  bool on(Tenant& tenant, const gpurota_msg_swap_moved& message);

  Duration delay_of(const Tenant& tenant, const Memory& memory, const Question& question) const;
  void carry_out(const sched::SetGate& action);
  void order(TenantId id, const GpuUuid& gpu, std::uint32_t direction, Bytes bytes);
  void carry_out(const sched::AnswerGrow& action);
  template <class Message>
  void send(Tenant& tenant, const Message& message);
  void hang_up_soon(TenantId id, const std::string& why);

  Parts parts_;
  TenantSessions* sessions_ = nullptr;
  SwapTenantMap tenants_;
  SwapMeasures measures_;
  SwapClaims claims_;
  SwapReach reach_;
};

}  // namespace gpurota::daemon
