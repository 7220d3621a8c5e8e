#include "daemon/tenants/swap_tenants.h"

#include "base/log.h"
#include "daemon/tenants/limit_keeper.h"
#include "daemon/tenants/swap_terms.h"
#include "daemon/tenants/tenant_sessions.h"

#include <algorithm>

namespace gpurota::daemon {
namespace {

// A tenant may have at most this many open questions.
constexpr std::size_t kMostQuestions = 4096;
// The most messages that wait for room in a tenant's socket. A tenant with more waiting messages
// does not read its socket, and is disconnected.
constexpr std::size_t kMostOutbox = 4096;

std::uint32_t wire_status(sched::GrowAnswer answer) {
  switch (answer) {
    case sched::GrowAnswer::kGranted:
      return GPUROTA_OK;
    case sched::GrowAnswer::kRefusedLimit:
      return GPUROTA_REFUSED_LIMIT;
    case sched::GrowAnswer::kRefusedCapacity:
      return GPUROTA_REFUSED_CAPACITY;
    case sched::GrowAnswer::kRefusedHost:
      return GPUROTA_REFUSED_HOST;
    case sched::GrowAnswer::kRefusedTurnsOff:
      return GPUROTA_REFUSED_TURNS_OFF;
  }
  return GPUROTA_REFUSED_LIMIT;
}

// The same process on an earlier connection.
const SwapTenant* find_earlier(const SwapTenantMap& tenants, const SwapTenant& tenant) {
  const SwapTenant* found = nullptr;
  for (const auto& [id, old] : tenants) {
    const bool same = old->process == tenant.process && old->lease == tenant.lease;
    if (same && id != tenant.id && old->here && !old->dead) found = old.get();
  }
  return found;
}

}  // namespace

SwapTenants::SwapTenants(Parts parts)
    : parts_(std::move(parts)),
      measures_(parts_.turns, parts_.grants, parts_.config),
      claims_(parts_.processes, parts_.turns, measures_),
      reach_({parts_.loop, parts_.processes, parts_.turns, parts_.config}, tenants_) {
  parts_.turns.set_tenants(*this);
}

pid_t SwapTenants::pid_of(TenantId id) const {
  const Tenant* tenant = find(id);
  return tenant ? tenant->pid() : 0;
}

SwapTenants::Owner SwapTenants::find_owner(std::span<const std::uint64_t, 2> key, uid_t uid) const {
  Owner found;
  for (const auto& [id, tenant] : tenants_) {
    if (tenant->dead || tenant->uid != uid) continue;
    if (!std::equal(key.begin(), key.end(), tenant->key.begin())) continue;
    if (tenant->connected) return {id, false};
    found.away = true;
  }
  return found;
}

void SwapTenants::add(TenantId id, const Lease& lease, const ports::ProcessId& process,
                      const std::vector<lease::HeldMemory>& held) {
  auto tenant = std::make_unique<Tenant>();
  tenant->id = id;
  tenant->lease = lease.id;
  tenant->uid = lease.uid;
  tenant->process = process;
  tenant->makes_way = lease.kind == LeaseKind::kFiller;
  tenant->parked = lease.park != ParkState::kNone;
  for (const LeaseGpu& gpu : lease.gpus) {
    Memory memory;
    memory.gpu = gpu.uuid;
    memory.take_terms(gpu);
    for (const lease::HeldMemory& said : held) {
      if (said.gpu != gpu.uuid) continue;
      memory.wired_before = said.granted;
      memory.contexts = said.contexts;
    }
    tenant->memory.push_back(std::move(memory));
  }
  tenants_[id] = std::move(tenant);
}

bool SwapTenants::take(TenantId id, const TenantMessage& message) {
  Tenant* const tenant = find(id);
  if (!tenant) return false;
  const bool first = std::holds_alternative<gpurota_msg_swap_here>(message);
  if (first == tenant->here) return false;  // SWAP_HERE comes once, before everything else
  tenant->asked.reset();
  const bool good = std::visit(
      [&]<class Message>(const Message& m) {
        if constexpr (requires { this->on(*tenant, m); }) return on(*tenant, m);
        return false;
      },
      message);
  if (Tenant* const left = find(id)) reach_.expect(*left);
  if (!good) {
    const auto type = std::visit([](const auto& m) { return m.header.type; }, message);
    log::warn("a tenant sent a message that is not allowed now",
              {{"pid", pid_of(id)}, {"type", type}});
  }
  return good;
}

bool SwapTenants::on(Tenant& tenant, const gpurota_msg_swap_here& message) {
  if (message.slots != tenant.memory.size()) return false;
  const auto believed =
      claims_.believe(tenant, message, find_earlier(tenants_, tenant), parts_.loop.now());
  if (!believed) return false;
  for (std::size_t slot = 0; slot < tenant.memory.size(); ++slot) {
    Memory& memory = tenant.memory[slot];
    // The true cost of the contexts is not known: either only the last daemon knew it, or the
    // message with the cost was lost.
    const Bytes of_contexts =
        memory.contexts > 0 ? believed->memory[slot].wired - memory.wired_before : Bytes();
    if (of_contexts.is_zero()) continue;
    memory.unmeasured = of_contexts;
    memory.context_since = parts_.loop.now();
    memory.came_back = true;
  }
  std::copy(std::begin(message.key), std::end(message.key), tenant.key.begin());
  tenant.here = true;
  const TenantId replaced = believed->replaces;
  parts_.turns.becomes_tenant(tenant.pid());
  parts_.turns.feed(*believed);
  if (const Tenant* old = find(replaced)) {
    if (old->connected) hang_up_soon(replaced, "it has connected again");
    tenants_.erase(replaced);
  }
  update_terms();
  return true;
}

bool SwapTenants::on(Tenant& tenant, const gpurota_msg_swap_grow& message) {
  if (message.slot >= tenant.memory.size() || tenant.questions.size() >= kMostQuestions) {
    return false;
  }
  Memory& memory = tenant.memory[message.slot];
  Question question{message.slot, message.kind, Bytes(message.bytes)};
  if (message.kind == GPUROTA_SWAP_CONTEXT) {
    question.bytes = parts_.grants.context_reserve(memory.gpu);
  }
  const std::uint32_t seq = message.header.seq;
  if (!tenant.questions.emplace(seq, question).second) return false;
  const bool hosted = message.kind == GPUROTA_SWAP_HOSTED;
  const bool wired = message.kind != GPUROTA_SWAP_MOVABLE && !hosted;
  const sched::Grow growth{tenant.id, memory.gpu, seq, question.bytes, wired, hosted};
  const Duration delay = delay_of(tenant, memory, question);
  if (delay > Duration::zero()) {
    tenant.delayed[seq] =
        parts_.loop.add_timer(parts_.loop.now() + delay, ports::Urgency::kSchedule, [this, growth] {
          Tenant* const asks = find(growth.tenant);
          if (!asks) return;
          const auto running_timer =
              asks->delayed.extract(growth.seq);  // keeps this callback alive while it runs
          parts_.turns.feed(growth);
        });
    return true;
  }
  parts_.turns.feed(growth);
  return true;
}

// Growth above a soft limit is delayed where the site's configuration says so.
Duration SwapTenants::delay_of(const Tenant& tenant, const Memory& memory,
                               const Question& question) const {
  const bool is_hosted = question.kind == GPUROTA_SWAP_HOSTED;
  if (!memory.soft_limit || question.kind == GPUROTA_SWAP_CONTEXT || is_hosted) return {};
  const Bytes charged = parts_.turns.charge(tenant.lease, memory.gpu).first;
  if (charged + question.bytes <= *memory.soft_limit) return {};
  return LimitKeeper::throttle(parts_.config);
}

bool SwapTenants::on(Tenant& tenant, const gpurota_msg_swap_shrink& message) {
  if (message.slot >= tenant.memory.size()) return false;
  Memory& memory = tenant.memory[message.slot];
  memory.wired_granted -= Bytes(message.wired_bytes);
  if (const sched::Holding* held = measures_.holding(tenant, memory).if_there()) {
    memory.freed_out += std::min(Bytes(message.out_bytes), held->out());
  }
  parts_.turns.feed(sched::Shrink{tenant.id, memory.gpu, Bytes(message.resident_bytes),
                                  Bytes(message.out_bytes), Bytes(message.wired_bytes),
                                  Bytes(message.hosted_bytes)});
  return true;
}

bool SwapTenants::on(Tenant& tenant, const gpurota_msg_swap_status& message) {
  if (message.gate_seq > tenant.gate_sent) return false;
  tenant.gate_seen = message.gate_seq;
  tenant.pinned = Bytes(message.pinned_bytes);
  parts_.turns.feed(sched::TenantStatus{tenant.id, message.gate_seq, message.busy != 0,
                                        message.waiting, message.ready});
  return true;
}

bool SwapTenants::on(Tenant& tenant, const gpurota_msg_swap_moved& message) {
  if (message.slot >= tenant.memory.size()) return false;
  Memory& memory = tenant.memory[message.slot];
  Bytes& ordered = memory.ordered[message.direction];
  const Bytes bytes(message.bytes), returned(message.returned);
  Bytes& excess = memory.excess[message.direction];
  excess += bytes + returned - ordered;
  if (excess > memory.slack[message.direction]) {
    log::warn("a tenant moved memory without an order",
              {{"pid", tenant.pid()},
               {"direction", message.direction == GPUROTA_SWAP_EVICT ? "out" : "in"},
               {"bytes", bytes.count()},
               {"returned", returned.count()},
               {"ordered", ordered.count()}});
    return false;
  }
  ordered -= bytes + returned;
  tenant.rdma = message.failed == GPUROTA_SWAP_RDMA;
  // Only memory that is moved or given back is progress.
  if (!(bytes + returned).is_zero() || !tenant.moves()) tenant.moving.reset();
  if (tenant.moves() && !tenant.moving) tenant.moving = parts_.loop.now();
  if (message.direction == GPUROTA_SWAP_EVICT) {
    const Bytes clean(std::uint64_t{message.clean_pages} * GPUROTA_CLEAN_PAGE);
    const bool doubted = measures_.doubts(tenant.uid, parts_.loop.now());
    parts_.turns.feed(sched::Evicted{tenant.id, memory.gpu, bytes, returned, message.failed != 0,
                                     std::min(clean, bytes), doubted});
    if (doubted) parts_.samples.sample_soon(memory.gpu);
  } else {
    parts_.turns.feed(sched::Restored{tenant.id, memory.gpu, bytes, returned, message.failed != 0});
  }
  return true;
}

void SwapTenants::carry_out(const sched::Actions& actions) {
  for (const sched::Action& action : actions) {
    if (const auto* gate = std::get_if<sched::SetGate>(&action)) {
      carry_out(*gate);
    } else if (const auto* evict = std::get_if<sched::Evict>(&action)) {
      order(evict->tenant, evict->gpu, GPUROTA_SWAP_EVICT, evict->bytes);
    } else if (const auto* restore = std::get_if<sched::Restore>(&action)) {
      order(restore->tenant, restore->gpu, GPUROTA_SWAP_RESTORE, restore->bytes);
    } else if (const auto* answer = std::get_if<sched::AnswerGrow>(&action)) {
      carry_out(*answer);
    }
  }
}

void SwapTenants::carry_out(const sched::SetGate& action) {
  Tenant* const tenant = find(action.tenant);
  if (!tenant) return;
  auto message = make_message<gpurota_msg_swap_gate>(GPUROTA_MSG_SWAP_GATE, action.seq);
  message.order = action.order == sched::GateOrder::kOpen    ? GPUROTA_GATE_OPEN
                  : action.order == sched::GateOrder::kClose ? GPUROTA_GATE_CLOSE
                                                             : GPUROTA_GATE_LET_ONE_THROUGH;
  tenant->gate_sent = action.seq;
  send(*tenant, message);
  reach_.expect(*tenant);
}

void SwapTenants::order(TenantId id, const GpuUuid& gpu, std::uint32_t direction, Bytes bytes) {
  Tenant* const tenant = find(id);
  if (!tenant) return;
  for (std::uint32_t slot = 0; slot < tenant->memory.size(); ++slot) {
    if (tenant->memory[slot].gpu != gpu) continue;
    auto message = make_message<gpurota_msg_swap_move>(GPUROTA_MSG_SWAP_MOVE, 0);
    message.slot = slot;
    message.direction = direction;
    message.bytes = bytes.count();
    if (!tenant->moving) tenant->moving = parts_.loop.now();
    tenant->memory[slot].allow(direction, bytes);
    send(*tenant, message);
    reach_.expect(*tenant);
    return;
  }
}

void SwapTenants::carry_out(const sched::AnswerGrow& action) {
  Tenant* const tenant = find(action.tenant);
  if (!tenant) return;
  const auto asked = tenant->questions.find(action.seq);
  if (asked == tenant->questions.end()) return;
  const Question question = asked->second;
  tenant->questions.erase(asked);
  auto message = make_message<gpurota_msg_swap_grown>(GPUROTA_MSG_SWAP_GROWN, action.seq);
  message.slot = question.slot;
  message.status = wire_status(action.answer);
  if (action.answer == sched::GrowAnswer::kGranted) {
    message.bytes = question.bytes.count();
    Memory& memory = tenant->memory[question.slot];
    const bool wired = question.kind == GPUROTA_SWAP_WIRED || question.kind == GPUROTA_SWAP_CONTEXT;
    if (wired) memory.wired_granted += question.bytes;
    if (question.kind == GPUROTA_SWAP_CONTEXT) {
      memory.unmeasured += question.bytes;
      memory.context_since.reset();
    }
  } else if (!action.to_host.is_zero()) {
    message.status = GPUROTA_REFUSED_TO_HOST;
    message.bytes = action.to_host.count();
  } else {
    parts_.records.on_refusal(tenant->lease, tenant->pid(), action.gpu, question.bytes);
  }
  send(*tenant, message);
}

template <class Message>
void SwapTenants::send(Tenant& tenant, const Message& message) {
  if (!tenant.connected) return;
  const auto bytes = std::as_bytes(std::span(&message, 1));
  using Sent = TenantSessions::Sent;
  Sent sent = Sent::kFull;
  if (tenant.outbox.empty()) sent = sessions_->send(tenant.id, bytes);
  if (sent == Sent::kGone) return hang_up_soon(tenant.id, "");
  if (sent == Sent::kDone) return;
  if (tenant.outbox.size() >= kMostOutbox) return hang_up_soon(tenant.id, "it reads nothing");
  tenant.outbox.emplace_back(bytes.begin(), bytes.end());
  sessions_->wait_writable(tenant.id, true);
}

void SwapTenants::on_writable(TenantId id) {
  Tenant* const tenant = find(id);
  while (tenant && !tenant->outbox.empty()) {
    using Sent = TenantSessions::Sent;
    const Sent sent = sessions_->send(id, tenant->outbox.front());
    if (sent == Sent::kFull) return;
    if (sent == Sent::kGone) return hang_up_soon(id, "");
    tenant->outbox.pop_front();
  }
  if (tenant) sessions_->wait_writable(id, false);
}

// The connection ends later, because the caller may be in the middle of a decision of several
// steps.
void SwapTenants::hang_up_soon(TenantId id, const std::string& why) {
  parts_.loop.post([this, id, why] { sessions_->hang_up(id, why); });
}

void SwapTenants::update_terms() {
  const SwapTerms terms({parts_.turns, parts_.config, parts_.users}, tenants_, parts_.loop.now());
  for (const auto& [id, tenant] : tenants_) {
    if (!tenant->here || !tenant->connected) continue;
    tenant->may_move = terms.likely_to_move(*tenant);
    const gpurota_msg_swap_terms said = terms.of(*tenant);
    if (tenant->terms && is_same(*tenant->terms, said)) continue;
    tenant->terms = said;
    send(*tenant, said);
  }
}

void SwapTenants::on_disconnect(TenantId id) {
  Tenant* const tenant = find(id);
  if (!tenant || !tenant->connected) return;
  tenant->connected = false;
  tenant->outbox.clear();
  tenant->questions.clear();
  tenant->delayed.clear();
  tenant->asked.reset();
  tenant->moving.reset();
  if (!tenant->here) {
    tenants_.erase(id);
  } else if (!tenant->dead) {
    parts_.turns.feed(sched::Reachable{id, false});
  }
  update_terms();
}

void SwapTenants::on_lease_change(const Lease& lease) {
  for (const auto& [id, tenant] : tenants_) {
    if (tenant->lease != lease.id) continue;
    tenant->parked = lease.park != ParkState::kNone;
    for (Memory& memory : tenant->memory) {
      if (const LeaseGpu* share = lease.find_gpu(memory.gpu)) memory.take_terms(*share);
    }
  }
  update_terms();
}

SwapTenants::Figures SwapTenants::figures(LeaseId lease, const GpuUuid& gpu) const {
  for (const auto& [id, tenant] : tenants_) {
    if (tenant->lease != lease) continue;
    for (const Memory& memory : tenant->memory) {
      if (memory.gpu != gpu) continue;
      const sched::Holding held = parts_.turns.holding(lease, gpu);
      const Bytes left = parts_.turns.turns().available(lease, gpu);
      return {memory.limit + memory.oversize, left + (memory.oversize - held.hosted)};
    }
  }
  return {};
}

HostPins SwapTenants::pins_of(LeaseId lease) const {
  HostPins sum;
  for (const auto& [id, tenant] : tenants_) {
    if (tenant->lease != lease || !tenant->connected || !tenant->terms) continue;
    sum.pinned += std::min(tenant->pinned, Bytes(tenant->terms->host_bytes));
    sum.may_pin += Bytes(tenant->terms->pinned_bytes);
    sum.may_move += tenant->may_move;
  }
  return sum;
}

void SwapTenants::on_lease_gone(LeaseId lease) {
  std::erase_if(tenants_, [&](const auto& entry) { return entry.second->lease == lease; });
  update_terms();
}

void SwapTenants::before_sample(const GpuUuid& gpu) {
  for (const auto& [id, tenant] : tenants_) measures_.before_sample(*tenant, gpu);
}

void SwapTenants::on_death(pid_t pid) {
  std::vector<TenantId> ids;
  for (const auto& [id, tenant] : tenants_) {
    if (tenant->pid() == pid && !tenant->dead) ids.push_back(id);
  }
  // Each connection of the process is handled, because the turns may know the process under the
  // TenantId of an earlier connection.
  for (const TenantId id : ids) {
    Tenant& tenant = *tenants_.at(id);
    if (!tenant.here) {
      tenants_.erase(id);
      continue;
    }
    tenant.dead = true;
    tenant.connected = false;
    tenant.died = parts_.loop.now();
    tenant.questions.clear();
    tenant.delayed.clear();
    tenant.outbox.clear();
    tenant.asked.reset();
    tenant.moving.reset();
    for (const Memory& memory : tenant.memory) parts_.samples.sample_soon(memory.gpu);
    parts_.turns.feed(sched::TenantDied{id});
  }
  update_terms();
}

void SwapTenants::on_contexts(TenantId id, const GpuUuid& gpu, int contexts) {
  Tenant* const tenant = find(id);
  if (!tenant) return;
  for (Memory& memory : tenant->memory) {
    if (memory.gpu != gpu) continue;
    memory.contexts = contexts;
    memory.context_since = parts_.loop.now();
  }
}

void SwapTenants::after_sample(const GpuSample& sample, TimePoint taken) {
  std::vector<TenantId> gone;
  std::vector<TenantId> ids;
  for (const auto& [id, tenant] : tenants_) ids.push_back(id);
  for (const TenantId id : ids) {
    Tenant* const tenant = find(id);
    if (!tenant) continue;
    for (Memory& memory : tenant->memory) {
      // The driver lists nothing of a parked process, whose books stay as they are.
      if (tenant->parked && !tenant->dead) break;
      if (memory.gpu == sample.uuid) measures_.measure(*tenant, memory, sample, taken);
      if (memory.gpu == sample.uuid && measures_.has_vanished(*tenant, memory, sample, taken)) {
        measures_.take_off(*tenant, memory);
        hang_up_soon(id, "it does not answer, and the driver lists no memory of it any more");
      }
    }
    const bool listed = std::any_of(tenant->memory.begin(), tenant->memory.end(),
                                    [](const Memory& memory) { return memory.listed; });
    if (tenant->dead && !listed) gone.push_back(id);
  }
  for (const TenantId id : gone) {
    tenants_.erase(id);
    parts_.turns.feed(sched::RemoveTenant{id});
  }
  update_terms();
}

bool SwapTenants::counts(pid_t pid) const {
  return std::any_of(tenants_.begin(), tenants_.end(),
                     [&](const auto& entry) { return entry.second->pid() == pid; });
}

bool SwapTenants::is_about_to_tell(pid_t pid) const {
  bool told = false;
  for (const auto& [id, tenant] : tenants_) told |= tenant->pid() == pid && tenant->here;
  return counts(pid) && !told;
}

bool SwapTenants::has_dead(LeaseId lease) const {
  return std::any_of(tenants_.begin(), tenants_.end(), [&](const auto& entry) {
    return entry.second->lease == lease && entry.second->dead;
  });
}

bool SwapTenants::expects_sample(const GpuUuid& gpu) const {
  return std::any_of(tenants_.begin(), tenants_.end(), [&](const auto& entry) {
    const Tenant& tenant = *entry.second;
    return std::any_of(tenant.memory.begin(), tenant.memory.end(), [&](const Memory& memory) {
      return memory.gpu == gpu && measures_.expects_sample(tenant, memory);
    });
  });
}

}  // namespace gpurota::daemon
