// The tenants of swap leases: abi/wire_swap.h on one side, the events and actions of sched/turns.h on the
// other. State thread only; TenantServer owns the sockets and calls in with what comes over them.
//
// Nothing a tenant says is believed further than it can be: sizes are cut to its lease's limit, reports of
// moves to what was ordered, answers to what was asked. What breaks these rules ends the connection,
// and the process is counted with what it was last known to have until the driver no longer lists it.
//
//   welcome ──► here (SWAP_HERE) ──► disconnected ──► superseded by the same process, or dead
//                  └ stopped ◄► answers (looked at while an order of ours is not carried out)
//   dead ──► gone: no GPU lists the process any more
#pragma once

#include "abi/wire.h"
#include "core/gpu.h"
#include "daemon/tenants/tenant_messages.h"
#include "daemon/tenants/turn_keeper.h"
#include "lease/grant_book.h"
#include "ports/event_loop.h"
#include "ports/processes.h"

#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace gpurota::daemon {

class SwapTenants {
 public:
  enum class Sent { kDone, kFull, kGone };
  struct Parts {
    ports::EventLoop& loop;
    ports::Processes& processes;
    TurnKeeper& turns;
    lease::GrantBook& grants;  // for what contexts cost
    const config::Config& config;
    std::function<UserLimits(uid_t)> limits_of;
    std::function<void(const GpuUuid&)> look_soon;
    std::function<void(LeaseId, pid_t, const GpuUuid&, Bytes asked)> on_refusal;
  };
  // TenantServer's part: the event sockets.
  struct Wire {
    std::function<Sent(TenantId, std::span<const std::byte>)> send;
    std::function<void(TenantId, bool)> wait_writable;
    std::function<void(TenantId, const std::string& why)> hang_up;
  };

  explicit SwapTenants(Parts parts);
  void set_wire(Wire wire) { wire_ = std::move(wire); }

  // Its HELLO was good, and says what it holds.
  void add(TenantId id, const Lease& lease, pid_t pid, const std::vector<lease::HeldMemory>& held);
  // One message from its event socket. False: it breaks the protocol.
  bool take(TenantId id, const TenantMessage& message);
  void on_writable(TenantId id);
  void on_disconnect(TenantId id);
  void on_death(pid_t pid);
  // It has said on the call socket how many contexts it has now.
  void on_contexts(TenantId id, const GpuUuid& gpu, int contexts);
  void on_lease_change(const Lease& lease);
  void on_lease_gone(LeaseId lease);
  // The limits of a lease have changed, or the configuration.
  void update_terms();

  void before_look(const GpuUuid& gpu);
  void after_look(const GpuSample& sample, TimePoint taken);

  // What a process of the lease sees as the size of the GPU, and what of that is left.
  struct Figures {
    Bytes limit, available;
  };
  Figures figures(LeaseId lease, const GpuUuid& gpu) const;
  bool has_dead(LeaseId lease) const;
  // Something on this GPU waits for the next look.
  bool expects_look(const GpuUuid& gpu) const;
  pid_t pid_of(TenantId id) const;
  bool has_rdma_device(TenantId id) const;
  // The process of the user's that has said this key (gpurota_msg_swap_here). `away`: it lives, and its connection
  // has ended.
  struct Owner {
    std::optional<TenantId> tenant;
    bool away = false;
  };
  Owner find_owner(std::span<const std::uint64_t, 2> key, uid_t uid) const;
  // The process is counted by turns, or about to say what it has.
  bool counts(pid_t pid) const;
  // It has connected and not yet said what it has.
  bool is_about_to_tell(pid_t pid) const;

 private:
  // On one GPU.
  struct Memory {
    GpuUuid gpu;
    Bytes limit;
    std::optional<Bytes> soft_limit;
    Bytes oversize;                // beside the limit, in host memory
    Bytes most;                    // the limit, or what it was before it was lowered
    std::array<Bytes, 2> ordered;  // by direction: and not yet reported
    std::array<Bytes, 2> excess;   // reported beyond that, since all was last reported
    std::array<Bytes, 2> slack;    // so much of that is fine: nothing before the first order
    Bytes unmeasured;              // granted for contexts that no look has shown yet
    std::optional<TimePoint> context_since;  // it was created before
    int contexts = 0;
    Bytes wired_before;      // of HELLO: what it was granted to hold for good, beside contexts
    bool came_back = false;  // it says of contexts what it was once told
    std::optional<Bytes> told_before;  // before the look that is under way; empty: in motion
    std::deque<Bytes> beside;          // the last looks at it while it was at rest
    bool listed = true;                // by the last look since it died

    // From now on it may move so much more.
    void take_terms(const LeaseGpu& share);
    void allow(std::uint32_t direction, Bytes bytes);
  };
  struct Question {
    std::uint32_t slot = 0;
    std::uint32_t kind = 0;
    Bytes bytes;
  };
  struct Tenant {
    TenantId id;
    LeaseId lease;
    uid_t uid = 0;
    pid_t pid = 0;
    std::array<std::uint64_t, 2> key{};
    bool makes_way = false;      // a filler, which is moved out for whoever comes
    std::vector<Memory> memory;  // by slot
    std::map<std::uint32_t, Question> questions;
    std::map<std::uint32_t, ports::EventLoop::SourcePtr> delayed;  // questions, by their soft limit
    std::deque<std::vector<std::byte>> outbox;                     // the socket was full
    std::uint32_t gate_sent = 0, gate_seen = 0;
    std::optional<TimePoint> asked;  // an order is open since then, without a sign of life
    std::optional<gpurota_msg_swap_terms> terms;
    bool here = false;  // turns know it
    bool connected = true;
    bool stopped = false;
    bool rdma = false;   // the last order was not carried out as it has such a device open
    bool stuck = false;  // has moved nothing of what was ordered for longer than it may
    std::optional<TimePoint> moving;  // something is ordered, and since then it has not got on
    bool dead = false;
    TimePoint died{};
  };

  Tenant* find(TenantId id);
  const Tenant* find(TenantId id) const;
  bool on(Tenant& tenant, const gpurota_msg_swap_here& message);
  bool on(Tenant& tenant, const gpurota_msg_swap_grow& message);
  bool on(Tenant& tenant, const gpurota_msg_swap_shrink& message);
  bool on(Tenant& tenant, const gpurota_msg_swap_status& message);
  bool on(Tenant& tenant, const gpurota_msg_swap_moved& message);

  Duration delay_of(const Tenant& tenant, const Memory& memory, const Question& question) const;
  void carry_out(const sched::Actions& actions);
  void carry_out(const sched::SetGate& action);
  void order(TenantId id, const GpuUuid& gpu, std::uint32_t direction, Bytes bytes);
  void carry_out(const sched::AnswerGrow& action);
  template <class Message>
  void send(Tenant& tenant, const Message& message);
  void hang_up_soon(TenantId id, const std::string& why);

  void expect(Tenant& tenant);
  static bool moves(const Tenant& tenant);
  static bool owes(const Tenant& tenant);
  std::map<LeaseId, Bytes> what_tenants_may_keep(int connected) const;
  void look_for_stopped();
  void set_reachable(Tenant& tenant, bool stopped, bool stuck);
  void measure(Tenant& tenant, Memory& memory, const GpuSample& sample, TimePoint taken);
  void measure_context(Tenant& tenant, Memory& memory, Bytes held);
  void settle_contexts(Tenant& tenant, Memory& memory, Bytes takes);
  Maybe<const sched::Holding> holding(const Tenant& tenant, const Memory& memory) const;
  std::optional<Bytes> told(const Tenant& tenant, const Memory& memory) const;
  void forget(TenantId id);

  Parts parts_;
  Wire wire_;
  std::map<TenantId, std::unique_ptr<Tenant>> tenants_;
  ports::EventLoop::SourcePtr stopped_timer_;
};

}  // namespace gpurota::daemon
