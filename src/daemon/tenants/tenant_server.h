// The tenants: processes of leases with a limit, connected through libgpurota. State thread only.
//
// Speaks abi/wire.h, keeps each tenant's sockets, page and pidfd, and turns what they ask into calls
// of the grant book; those of swap leases it hands to SwapTenants. A tenant that breaks the protocol is logged once and disconnected; it is then
// counted in full until NVML shows that its memory is back.
//
// Messages are read by user: each user who has some gets the same part of the state thread's time (user_turns.h).
#pragma once

#include "abi/wire.h"
#include "base/fd.h"
#include "config/config.h"
#include "daemon/leases/automatic_leases.h"
#include "daemon/leases/lease_manager.h"
#include "daemon/leases/tracked_process.h"
#include "daemon/tenants/swap_tenants.h"
#include "daemon/tenants/tenant_messages.h"
#include "daemon/tenants/tenant_page.h"
#include "daemon/tenants/tenant_roster.h"
#include "daemon/users/doorman.h"
#include "daemon/users/served_turns.h"
#include "daemon/users/user_turns.h"
#include "lease/grant_book.h"
#include "ports/durability.h"
#include "ports/event_loop.h"
#include "sys/shared_page.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace gpurota::daemon {

// The leases of processes that are connected through libgpurota.
class TenantLeases {
 public:
  virtual ~TenantLeases() = default;
  virtual std::optional<LeaseId> lease_of(pid_t pid) const = 0;
};

struct TenantSession;

// Whose message is read next: a connection's, or that of a tenant's event socket.
struct TenantTurn {
  const TenantSession* session = nullptr;
  TenantId tenant{};
  bool operator==(const TenantTurn&) const = default;
};

class TenantServer final : public LeaseListener,
                           public TenantLeases,
                           private SwapWire,
                           private TurnClient<TenantTurn> {
 public:
  struct Tenant;  // only its .cpp files know more

  struct Parts {
    ports::EventLoop& loop;
    ports::Processes& processes;
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
    // Null: what is stored is on the disk at once.
    const ports::Durability* durability = nullptr;
  };

  explicit TenantServer(Parts parts);
  ~TenantServer() override;

  Result<void> listen(const std::string& path, const ipc::ListenOptions& options);

  // Says to tenants what the grant book decided.
  void carry_out(const lease::AddressedGrantActions& actions);
  // A lease has changed or is gone: the pages, and the connections.
  void on_lease_change(const LeaseEntry& entry, bool gone) override;
  bool holds_memory(LeaseId lease) const override { return parts_.swap.has_dead(lease); }
  // Before a look at `gpu`: remembers what the tenants say they use.
  void before_look(const GpuUuid& gpu);
  // After it: feeds the grant book. `outsiders` by lease: held by processes that are no tenants.
  void after_look(const GpuSample& sample, TimePoint taken,
                  const std::map<LeaseId, Bytes>& outsiders);

  // The look failed: nobody is to wait for what it would have shown.
  void after_failed_look(const GpuUuid& gpu);

  // Tells programs of leases that the disk has now.
  void on_durability(const ports::Durability::News& news);

  std::optional<LeaseId> lease_of(pid_t pid) const override;
  // What the process says of itself on this GPU.
  std::optional<TenantUse> use_of(pid_t pid, const GpuUuid& gpu) const;
  // The slack that others of the lease hold and the lease could call back; of nobody: all have.
  Bytes slack(LeaseId lease, const GpuUuid& gpu, TenantId but) const;

 private:
  using Session = TenantSession;

  void welcome(Fd fd, ipc::Peer peer, UserBudgets::Held descriptor);
  void on_session(Session& session, unsigned events);
  void on_event_socket(TenantId id, unsigned events);
  // One message.
  void read_session(Session& session);
  void read_event(TenantId id);
  void want_turn(Session& session);
  void want_turn(Tenant& tenant);
  void serve(const TenantTurn& turn) override;
  void serve_session(Session& session);
  void serve_event(TenantId id);
  bool take_event(Tenant& tenant, const TenantMessage& message);
  Sent send(TenantId id, std::span<const std::byte> packet) override;
  void wait_writable(TenantId id, bool wait) override;
  void hang_up(TenantId id, const std::string& why) override;
  // False if the connection is to be ended.
  bool handle(Session& session, const TenantMessage& message);
  void hello(Session& session, const gpurota_msg_hello& hello);
  bool automatic(Session& session, const gpurota_msg_automatic& question);
  bool tell_lease(Session& session, const gpurota_msg_lease& answer);
  bool ask_again(Session& session, const gpurota_msg_automatic& question);
  bool crowded(LeaseId lease, const ports::ProcessId& newcomer) const;
  struct Place;
  Result<Place> place_for(const Session& session, const gpurota_msg_hello& hello,
                          const Lease& lease);
  bool comes_back(const Lease& lease, const gpurota_msg_hello& hello,
                  const ports::ProcessId& process) const;
  std::uint32_t admit(const Session& session, const gpurota_msg_hello& hello,
                      const LeaseEntry*& entry) const;
  Result<Tenant*> add_tenant(Session& session, const gpurota_msg_hello& hello,
                             const LeaseEntry& entry, Place place);
  Result<Fd> open_event_socket(Tenant& tenant);
  void supersede_by(Tenant& newcomer);
  bool grow(Tenant& tenant, const gpurota_msg_grow& message);
  bool give_back(Tenant& tenant, const gpurota_msg_return& message);
  bool ask(Tenant& tenant, const gpurota_msg_query& message);
  void answer_asked(TenantId id);
  bool query(Tenant& tenant, std::uint32_t slot, std::uint32_t seq);
  std::optional<LeaseId> owner_of(pid_t pid);
  bool members(Tenant& tenant, const gpurota_msg_processes& message);
  bool open(Tenant& tenant, const gpurota_msg_open& message);
  std::uint32_t bring_together(Tenant& opener, const gpurota_msg_open& message, Fd* end);
  bool contexts(Tenant& tenant, const gpurota_msg_contexts& message);
  void answer_measured(const GpuUuid& gpu, TimePoint taken);
  void refuse(Session& session, std::uint32_t seq, std::uint32_t status);
  // It is over: nothing is read from it or said to it any more, and its tenant has no connection. What follows from that, and
  // its end, comes when nobody looks at it or at any other: safe wherever sessions and tenants are gone through.
  void end_session(Session& session, const std::string& why);
  void end_ended_sessions();
  void on_death(TenantId id);
  void forget_settled();
  void erase(TenantId id);
  // In the order of their numbers.
  const std::map<TenantId, Tenant*>& tenants_of(LeaseId lease) const;
  void schedule();
  void publish_all(LeaseId lease);
  static Bytes own_slack(const Tenant& tenant, std::size_t slot, const lease::Account& account);
  Tenant* find(TenantId id) const;
  Parts parts_;
  ports::EventLoop::SourcePtr timer_;
  std::map<const Session*, std::unique_ptr<Session>> sessions_;
  struct Ended {
    const Session* session;
    std::optional<TenantId> tenant;
  };
  std::vector<Ended> ended_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();  // what is posted may come too late
  std::set<Session*> unsaid_;                   // who wait for a lease until the disk has it
  std::map<LeaseId, std::uint64_t> unsettled_;  // automatic ones: with which change of the store
  std::map<TenantId, std::unique_ptr<Tenant>> tenants_;
  std::map<LeaseId, std::map<TenantId, Tenant*>> of_lease_;
  std::multimap<pid_t, Tenant*> of_process_;  // the dead included
  std::set<TenantId> dead_;
  ServedTurns<TenantTurn, UserTurns<TenantTurn>> turns_;
  std::uint64_t last_id_ = 0;
  const TimePoint since_;
  Doorman doorman_;
};

}  // namespace gpurota::daemon
