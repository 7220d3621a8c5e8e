// The tenants' side of the grant book: what they ask, what it decided, what NVML shows. The other
// half of tenant_server.cpp.
#include "base/log.h"
#include "daemon/tenants/tenant_server_parts.h"
#include "ipc/packet.h"

#include <algorithm>
#include <array>

#include <sys/socket.h>

namespace gpurota::daemon {
namespace {

// More than a socket of the kernel's default size holds (277 small packets): who keeps it full, on and on, has
// its answer without them.
constexpr int kMostBeforeAnswer = 512;
// A new daemon has heard of all processes within this.
constexpr Duration kAllAreBack = std::chrono::seconds(10);

constexpr const char* kDoesNotRead = "it does not read its answers";

}  // namespace

Result<TenantServer::Tenant*> TenantServer::add_tenant(Session& session,
                                                       const gpurota_msg_hello& hello,
                                                       const LeaseEntry& entry, Place place) {
  auto tenant = std::make_unique<Tenant>();
  tenant->place = std::move(place);
  tenant->id = TenantId{++last_id_};
  tenant->lease = entry.lease.id;
  tenant->session = &session;
  tenant->swap = entry.lease.swap();
  tenant->user = session.peer.uid;
  if (hello.held_count == 0) tenant->refused = 0;
  for (const LeaseGpu& gpu : entry.lease.gpus) tenant->slots.push_back(gpu.uuid);
  const TenantId id = tenant->id;
  GPUROTA_ASSIGN_OR_RETURN(
      tenant->process, track(parts_.processes, session.peer.process, [this, id] { on_death(id); }));
  GPUROTA_ASSIGN_OR_RETURN(sys::SharedPage page, sys::SharedPage::make());
  tenant->page.emplace(std::move(page));
  lay_out_page(tenant->shared(), tenant->slots);

  std::vector<lease::HeldMemory> held;
  for (std::uint32_t i = 0; i < hello.held_count; ++i) {
    for (const GpuUuid& gpu : tenant->slots) {
      const auto bytes = uuid_bytes(gpu);
      if (bytes && std::equal(bytes->begin(), bytes->end(), hello.held[i].uuid)) {
        const int contexts =
            static_cast<int>(std::min<std::uint32_t>(hello.held[i].contexts, 4096));
        held.push_back({gpu, Bytes(hello.held[i].granted_bytes), contexts});
      }
    }
  }
  for (const lease::HeldMemory& memory : held) {
    assume_use(tenant->shared(), *tenant->slot_of(memory.gpu), memory.granted);
  }
  parts_.roster.recall(entry.lease.id, tenant->process.id, held);
  parts_.grants.add_tenant(id, entry.lease.id, held);
  supersede_by(*tenant);
  if (tenant->swap) parts_.swap.add(id, entry.lease, session.peer.process.pid, held);
  (void)parts_.leases.add_process(entry.lease.id, session.peer.process);  // the tenant holds it too
  session.tenant = tenant.get();
  of_lease_[tenant->lease][id] = tenant.get();
  of_process_.emplace(tenant->process.pid(), tenant.get());
  return tenants_.emplace(id, std::move(tenant)).first->second.get();
}

void TenantServer::erase(TenantId id) {
  const auto at = tenants_.find(id);
  Tenant* const tenant = at->second.get();
  parts_.records.on_refused_allocations(tenant->newly_refused());
  const auto siblings = of_lease_.find(tenant->lease);
  siblings->second.erase(id);
  if (siblings->second.empty()) of_lease_.erase(siblings);
  const auto [begin, end] = of_process_.equal_range(tenant->process.pid());
  of_process_.erase(std::find_if(begin, end, [&](const auto& e) { return e.second == tenant; }));
  dead_.erase(id);
  parts_.roster.remove(tenant->lease, tenant->process.id, id);
  tenants_.erase(at);
}

const std::map<TenantId, TenantServer::Tenant*>& TenantServer::tenants_of(LeaseId lease) const {
  static const std::map<TenantId, Tenant*> kNone;
  const auto it = of_lease_.find(lease);
  return it == of_lease_.end() ? kNone : it->second;
}

// A process that connects again brings its own account of what it holds: the old one is void.
void TenantServer::supersede_by(Tenant& newcomer) {
  std::vector<TenantId> old;
  for (const auto& [id, tenant] : tenants_of(newcomer.lease)) {
    if (tenant->process.id == newcomer.process.id && !tenant->session && !tenant->dead)
      old.push_back(id);
  }
  for (const TenantId id : old) {
    parts_.grants.replace(id, newcomer.id);
    Tenant& before = *tenants_.at(id);
    parts_.records.on_refused_allocations(before.newly_refused());
    newcomer.refused = before.refused;
    erase(id);
  }
}

bool TenantServer::grow(Tenant& tenant, const gpurota_msg_grow& message) {
  if (message.slot >= tenant.slots.size() || tenant.swap) return false;
  lease::GrowRequest request;
  request.tenant = tenant.id;
  request.seq = message.header.seq;
  request.context = message.kind == GPUROTA_GROW_CONTEXT;
  request.returned = Bytes(message.returned_bytes);
  request.need = Bytes(message.need_bytes);
  request.want = Bytes(message.want_bytes);
  tenant.last_asked = request.need;
  carry_out(parts_.grants.grow(tenant.slots[message.slot], request, parts_.loop.now()));
  return true;
}

bool TenantServer::give_back(Tenant& tenant, const gpurota_msg_return& message) {
  if (message.slot >= tenant.slots.size() || tenant.swap) return false;
  carry_out(parts_.grants.give_back(tenant.id, tenant.slots[message.slot], Bytes(message.bytes),
                                    message.header.seq, message.grown_seq, parts_.loop.now()));
  return true;
}

// A program that frees and then asks says it on two sockets: what it freed is in the one before the
// question is in the other, and is to be counted in the answer.
bool TenantServer::ask(Tenant& tenant, const gpurota_msg_query& message) {
  if (message.slot >= tenant.slots.size() || tenant.asked) return false;  // one at a time
  if (!tenant.swap) return query(tenant, message.slot, message.header.seq);
  tenant.asked = {message.slot, message.header.seq, kMostBeforeAnswer};
  answer_asked(tenant.id);
  return true;
}

// As the loop comes back for each message, a tenant with many of them holds up nobody but itself.
void TenantServer::answer_asked(TenantId id) {
  Tenant* const tenant = find(id);
  if (!tenant || !tenant->session || !tenant->asked) return;
  if (tenant->event && ipc::has_packet(tenant->event.get()) && tenant->asked->patience-- > 0)
    return;
  const Tenant::Asked asked = *tenant->asked;
  tenant->asked.reset();
  if (!query(*tenant, asked.slot, asked.seq)) {
    end_session(*tenant->session, kDoesNotRead);
  }
}

bool TenantServer::query(Tenant& tenant, std::uint32_t slot, std::uint32_t seq) {
  if (slot >= tenant.slots.size()) return false;
  const GpuUuid& gpu = tenant.slots[slot];
  auto info = make_message<gpurota_msg_info>(GPUROTA_MSG_INFO, seq);
  info.slot = slot;
  if (tenant.swap) {
    const SwapTenants::Figures figures = parts_.swap.figures(tenant.lease, gpu);
    info.limit_bytes = figures.limit.count();
    info.available_bytes = figures.available.count();
  } else if (const lease::Account* account = parts_.grants.find(tenant.lease, gpu).if_there()) {
    info.limit_bytes = account->limit().count();
    info.available_bytes = (account->available() + slack(tenant.lease, gpu, tenant.id)).count();
  }
  return send_message(tenant.session->fd.get(), info);
}

// By what the kernel says.
std::optional<LeaseId> TenantServer::owner_of(pid_t pid) {
  if (!parts_.processes.read_info(pid)) return std::nullopt;
  return parts_.attribution.owner_of(pid).lease;
}

bool TenantServer::members(Tenant& tenant, const gpurota_msg_processes& message) {
  auto answer = make_message<gpurota_msg_processes>(GPUROTA_MSG_MEMBERS, message.header.seq);
  for (std::uint32_t i = 0; i < message.count; ++i) {
    const pid_t pid = message.pid[i];
    if (pid <= 0) continue;
    if (lease_of(pid) != tenant.lease && owner_of(pid) != tenant.lease) continue;
    answer.pid[answer.count++] = pid;
  }
  return send_message(tenant.session->fd.get(), answer);
}

// A descriptor that waits to be read counts against us, so no connection has two: who asks again before it has read its answer
// ends its connection, and an owner that has something unread is asked later.
bool TenantServer::open(Tenant& tenant, const gpurota_msg_open& message) {
  const int call = tenant.session->fd.get();
  if (ipc::has_unread(call)) return false;
  auto answer = make_message<gpurota_msg_opened>(GPUROTA_MSG_OPENED, message.header.seq);
  Fd end;
  answer.status = bring_together(tenant, message, &end);
  if (answer.status != GPUROTA_OK) return send_message(call, answer);
  return send_message(call, answer, std::array{end.get()});
}

std::uint32_t TenantServer::bring_together(Tenant& opener, const gpurota_msg_open& message,
                                           Fd* end) {
  const LeaseEntry* const entry = parts_.leases.find(opener.lease);
  if (!entry) return GPUROTA_REFUSED_LEASE;
  const SwapTenants::Owner found = parts_.swap.find_owner(message.name.owner, entry->lease.uid);
  const bool may_come = found.away || parts_.loop.now() - since_ < kAllAreBack;
  if (!found.tenant) return may_come ? GPUROTA_REFUSED_BUSY : GPUROTA_REFUSED_LEASE;
  const Tenant* const owner = find(*found.tenant);
  if (!owner || !owner->event || ipc::has_unread(owner->event.get())) return GPUROTA_REFUSED_BUSY;
  auto pair = ipc::make_socket_pair(SOCK_SEQPACKET);
  if (!pair) return GPUROTA_REFUSED_BUSY;
  auto question = make_message<gpurota_msg_open>(GPUROTA_MSG_SWAP_OPEN, 0);
  question.name = message.name;
  if (!send_message(owner->event.get(), question, std::array{pair->first.get()})) {
    return GPUROTA_REFUSED_BUSY;
  }
  *end = std::move(pair->second);
  return GPUROTA_OK;
}

bool TenantServer::contexts(Tenant& tenant, const gpurota_msg_contexts& message) {
  if (message.slot >= tenant.slots.size()) return false;
  const GpuUuid& gpu = tenant.slots[message.slot];
  const TimePoint now = parts_.loop.now();
  const int count = static_cast<int>(std::min<std::uint32_t>(message.count, 4096));
  parts_.grants.set_contexts(tenant.id, gpu, count, now);
  if (tenant.swap) parts_.swap.on_contexts(tenant.id, gpu, count);
  if (tenant.awaiting.size() >= GPUROTA_SLOTS) return false;
  tenant.awaiting.push_back({message.slot, message.header.seq, now});
  parts_.samples.look_soon(gpu);
  return true;
}

void TenantServer::answer_measured(const GpuUuid& gpu, TimePoint taken) {
  for (const auto& [id, tenant] : tenants_) {
    std::vector<Tenant::Awaiting> due;
    std::erase_if(tenant->awaiting, [&](const Tenant::Awaiting& waiting) {
      const bool is_due = tenant->slots[waiting.slot] == gpu && taken >= waiting.since;
      if (is_due) due.push_back(waiting);
      return is_due;
    });
    for (const Tenant::Awaiting& waiting : due) {
      if (!tenant->session || query(*tenant, waiting.slot, waiting.seq)) continue;
      end_session(*tenant->session, kDoesNotRead);
    }
  }
}

void TenantServer::carry_out(const lease::AddressedGrantActions& actions) {
  for (const auto& [gpu, action] : actions) {
    const TenantId id = std::visit([](const auto& a) { return a.tenant; }, action);
    Tenant* const tenant = find(id);
    const auto slot = tenant ? tenant->slot_of(gpu) : std::nullopt;
    if (!slot) continue;
    if (const auto* reply = std::get_if<lease::GrantReply>(&action)) {
      auto grown = make_message<gpurota_msg_grown>(GPUROTA_MSG_GROWN, reply->seq);
      grown.slot = static_cast<std::uint32_t>(*slot);
      grown.status =
          reply->status == lease::GrantStatus::kGranted ? GPUROTA_OK : GPUROTA_REFUSED_LIMIT;
      grown.granted_bytes = reply->granted.count();
      grown.available_bytes = reply->available.count();
      if (tenant->session && !send_message(tenant->session->fd.get(), grown)) {
        end_session(*tenant->session, kDoesNotRead);
      }
      if (reply->status == lease::GrantStatus::kRefused) {
        parts_.records.on_refusal(tenant->lease, tenant->process.pid(), gpu, tenant->last_asked);
      }
    } else if (tenant->event) {
      auto recall = make_message<gpurota_msg_recall>(GPUROTA_MSG_RECALL,
                                                     std::get<lease::GrantRecall>(action).seq);
      recall.slot = static_cast<std::uint32_t>(*slot);
      // A full socket is a tenant that is stopped: it is counted in full after the patience.
      (void)send_message(tenant->event.get(), recall);
    }
  }
  schedule();
}

void TenantServer::schedule() {
  const auto when = parts_.grants.next_deadline();
  timer_.reset();
  if (!when) return;
  auto timer = parts_.loop.add_timer(*when, ports::Urgency::kSchedule,
                                     [this] { carry_out(parts_.grants.serve(parts_.loop.now())); });
  if (timer) timer_ = std::move(*timer);
}

void TenantServer::on_death(TenantId id) {
  Tenant* const tenant = find(id);
  if (!tenant || tenant->dead) return;
  tenant->dead = true;
  dead_.insert(id);
  if (tenant->session) end_session(*tenant->session, "");
  const LeaseId lease = tenant->lease;
  if (tenant->swap) parts_.swap.on_death(tenant->process.pid());
  carry_out(parts_.grants.mark_dead(id, parts_.loop.now()));
  for (const GpuUuid& gpu : tenant->slots) parts_.samples.look_soon(gpu);
  forget_settled();
  parts_.leases.on_process_death(lease);
}

// The dead whose memory is back on all GPUs.
void TenantServer::forget_settled() {
  for (auto it = dead_.begin(); it != dead_.end();) {
    const Tenant& tenant = *tenants_.at(*it++);
    const bool moves = tenant.swap && parts_.swap.counts(tenant.process.pid());
    if (moves || parts_.grants.counts(tenant.id)) continue;
    parts_.grants.forget(tenant.id);
    erase(tenant.id);
  }
}

void TenantServer::before_look(const GpuUuid& gpu) {
  parts_.swap.before_look(gpu);
  for (const auto& [id, tenant] : tenants_) {
    const auto slot = tenant->slot_of(gpu);
    if (!slot) continue;
    tenant->used_before.resize(tenant->slots.size());
    tenant->used_before[*slot] = read_use(tenant->shared(), *slot).used;
    parts_.records.on_refused_allocations(tenant->newly_refused());
  }
}

void TenantServer::after_look(const GpuSample& sample, TimePoint taken,
                              const std::map<LeaseId, Bytes>& outsiders) {
  std::map<LeaseId, std::vector<lease::GrantBook::TenantMeasurement>> by_lease;
  for (const auto& [id, entry] : parts_.leases.entries()) {
    if (parts_.grants.find(id, sample.uuid)) by_lease[id];
  }
  for (const auto& [id, tenant] : tenants_) {
    const auto slot = tenant->slot_of(sample.uuid);
    if (!slot) continue;
    lease::Measurement seen;
    seen.taken = taken;
    seen.used_hint = read_use(tenant->shared(), *slot).used;
    if (tenant->used_before.size() > *slot) {
      seen.used_hint = std::max(seen.used_hint, tenant->used_before[*slot]);
    }
    for (const GpuProcess& process : sample.processes) {
      if (process.pid != tenant->process.pid()) continue;
      seen.listed = true;
      seen.held = process.used;
    }
    by_lease[tenant->lease].push_back({id, seen});
  }
  for (const auto& [lease, measurements] : by_lease) {
    // Who came back was taken for an outsider until this look.
    if (parts_.roster.was_complete(lease, taken)) parts_.grants.release_hold(lease, sample.uuid);
    const auto others = outsiders.find(lease);
    carry_out(parts_.grants.measure(lease, sample.uuid, measurements,
                                    others == outsiders.end() ? Bytes() : others->second,
                                    parts_.loop.now()));
    // What was freed since its limit was lowered is not to be allocated again.
    carry_out(parts_.grants.recall_excess(lease));
    publish_all(lease);
  }
  parts_.swap.after_look(sample, taken);
  for (const auto& [id, entry] : parts_.leases.entries()) {
    if (entry.lease.swap() && entry.lease.find_gpu(sample.uuid)) publish_all(id);
  }
  answer_measured(sample.uuid, taken);
  forget_settled();
}

void TenantServer::after_failed_look(const GpuUuid& gpu) { answer_measured(gpu, TimePoint::max()); }

void TenantServer::publish_all(LeaseId lease) {
  std::map<GpuUuid, Bytes> slack_of_all;
  for (const auto& [id, tenant] : tenants_of(lease)) {
    if (tenant->dead) continue;
    for (std::size_t slot = 0; slot < tenant->slots.size(); ++slot) {
      const GpuUuid& gpu = tenant->slots[slot];
      if (tenant->swap) {
        const SwapTenants::Figures figures = parts_.swap.figures(lease, gpu);
        publish(tenant->shared(), slot, figures.limit, figures.available);
        continue;
      }
      const lease::Account* account = parts_.grants.find(lease, gpu).if_there();
      if (!account) continue;
      const auto [all, is_new] = slack_of_all.try_emplace(gpu);
      if (is_new) all->second = slack(lease, gpu, {});
      const Bytes others = all->second - std::min(all->second, own_slack(*tenant, slot, *account));
      publish(tenant->shared(), slot, account->limit(), account->available() + others);
    }
  }
}

void TenantServer::on_lease_change(const LeaseEntry& entry, bool gone) {
  if (!gone) {
    parts_.swap.on_lease_change(entry.lease);
    publish_all(entry.lease.id);
    return carry_out(parts_.grants.recall_excess(entry.lease.id));
  }
  parts_.swap.on_lease_gone(entry.lease.id);
  for (auto left = tenants_of(entry.lease.id); const auto& [id, tenant] : left) {
    if (Session* const session = tenant->session) end_session(*session, "");
    erase(id);
  }
  schedule();
}

std::optional<LeaseId> TenantServer::lease_of(pid_t pid) const {
  const auto at = of_process_.find(pid);
  return at == of_process_.end() ? std::nullopt : std::optional(at->second->lease);
}

std::optional<TenantUse> TenantServer::use_of(pid_t pid, const GpuUuid& gpu) const {
  const auto [begin, end] = of_process_.equal_range(pid);
  for (auto at = begin; at != end; ++at) {
    const Tenant* const tenant = at->second;
    if (tenant->dead) continue;
    if (const auto slot = tenant->slot_of(gpu)) return read_use(tenant->shared(), *slot);
  }
  return std::nullopt;
}

Bytes TenantServer::slack(LeaseId lease, const GpuUuid& gpu, TenantId but) const {
  Bytes sum;
  const lease::Account* account = parts_.grants.find(lease, gpu).if_there();
  if (!account) return sum;
  for (const auto& [id, tenant] : tenants_of(lease)) {
    const auto slot = id == but ? std::nullopt : tenant->slot_of(gpu);
    if (slot) sum += own_slack(*tenant, *slot, *account);
  }
  return sum;
}

// A hint, bounded by what was granted.
Bytes TenantServer::own_slack(const Tenant& tenant, std::size_t slot,
                              const lease::Account& account) {
  if (!tenant.session) return Bytes();
  return std::min(read_use(tenant.shared(), slot).headroom, account.holding(tenant.id).granted);
}

}  // namespace gpurota::daemon
