#include "daemon/tenants/tenant_server.h"

#include <algorithm>
#include <array>
#include <utility>

namespace gpurota::daemon {
namespace {

void refuse(TenantSession& session, std::uint32_t seq, std::uint32_t status) {
  auto welcome = make_message<gpurota_msg_welcome>(GPUROTA_MSG_WELCOME, seq);
  welcome.version = GPUROTA_WIRE_VERSION;
  welcome.status = status;
  (void)send_message(session.fd.get(), welcome);
}

// Reads from HELLO the memory that a tenant holds on the GPUs of its lease.
std::vector<lease::HeldMemory> read_held(const Tenant& tenant, const gpurota_msg_hello& hello) {
  std::vector<lease::HeldMemory> held;
  for (std::uint32_t i = 0; i < hello.held_count; ++i) {
    for (const GpuUuid& gpu : tenant.slots) {
      const auto bytes = uuid_bytes(gpu);
      if (bytes && std::equal(bytes->begin(), bytes->end(), hello.held[i].uuid)) {
        const int contexts =
            static_cast<int>(std::min<std::uint32_t>(hello.held[i].contexts, 4096));
        held.push_back({gpu, Bytes(hello.held[i].granted_bytes), contexts});
      }
    }
  }
  return held;
}

}  // namespace

TenantServer::TenantServer(Parts parts)
    : parts_(parts),
      sessions_({.loop = parts_.loop,
                 .config = parts_.config,
                 .budgets = parts_.budgets,
                 .swap = parts_.swap,
                 .table = table_,
                 .server = *this}),
      admission_({.tables = parts_.tables,
                  .config = parts_.config,
                  .budgets = parts_.budgets,
                  .gpus = parts_.gpus,
                  .table = table_}),
      accounts_({.loop = parts_.loop,
                 .tables = parts_.tables,
                 .grants = parts_.grants,
                 .swap = parts_.swap,
                 .samples = parts_.samples,
                 .records = parts_.records,
                 .roster = parts_.roster,
                 .table = table_,
                 .sessions = sessions_}),
      answers_({.loop = parts_.loop,
                .automatic = parts_.automatic,
                .sessions = sessions_,
                .durability = parts_.durability}),
      neighbours_({.loop = parts_.loop,
                   .tables = parts_.tables,
                   .swap = parts_.swap,
                   .attribution = parts_.attribution,
                   .table = table_}),
      latency_(parts_.config, table_, parts_.budgets),
      shares_(parts_.tables, table_),
      held_back_({.leases = parts_.tables,
                  .gpus = parts_.gpus,
                  .latency = latency_,
                  .shares = shares_,
                  .records = parts_.records}) {}

bool TenantServer::on_call(TenantSession& session, const TenantMessage& message) {
  if (const auto* greeting = std::get_if<gpurota_msg_hello>(&message)) {
    if (session.tenant) return false;
    hello(session, *greeting);
    return true;
  }
  if (const auto* question = std::get_if<gpurota_msg_automatic>(&message)) {
    return !session.tenant && answers_.answer(session, *question);
  }
  return session.tenant && on_tenants_call(*session.tenant, message);
}

bool TenantServer::on_tenants_call(Tenant& tenant, const TenantMessage& message) {
  if (is_swap_message(message)) return false;
  if (const auto* m = std::get_if<gpurota_msg_grow>(&message)) return accounts_.grow(tenant, *m);
  if (const auto* m = std::get_if<gpurota_msg_return>(&message)) {
    return accounts_.give_back(tenant, *m);
  }
  if (const auto* m = std::get_if<gpurota_msg_query>(&message)) return accounts_.ask(tenant, *m);
  if (const auto* m = std::get_if<gpurota_msg_processes>(&message)) {
    return neighbours_.members(tenant, *m);
  }
  if (const auto* m = std::get_if<gpurota_msg_open>(&message)) return neighbours_.open(tenant, *m);
  if (const auto* m = std::get_if<gpurota_msg_holding>(&message)) {
    return accounts_.holding(tenant, *m);
  }
  const auto* m = std::get_if<gpurota_msg_contexts>(&message);
  return m && accounts_.contexts(tenant, *m);
}

bool TenantServer::on_event(Tenant& tenant, const TenantMessage& message) {
  const TenantId id = tenant.id;
  bool good = false;
  if (const auto* ready = std::get_if<gpurota_msg_park_ready>(&message)) {
    if (parts_.on_park_ready) parts_.on_park_ready(tenant, *ready);
    good = true;
  } else if (const auto* marked = std::get_if<gpurota_msg_marked>(&message)) {
    latency_.on_marked(tenant, *marked);
    good = true;
  } else if (tenant.swap) {
    good = is_swap_message(message) && parts_.swap.take(id, message);
  } else if (const auto* back = std::get_if<gpurota_msg_return>(&message)) {
    good = accounts_.give_back(tenant, *back);
  }
  if (good) accounts_.answer_asked(id);
  return good;
}

void TenantServer::on_disconnected(Tenant& tenant) {
  if (tenant.swap) parts_.swap.on_disconnect(tenant.id);
  latency_.refresh();
  shares_.refresh();
  if (!tenant.dead) {
    accounts_.carry_out(parts_.grants.disconnect(tenant.id, parts_.loop.now()));
  }
}

// A refused connection has not sent a valid HELLO: its time to do so continues.
void TenantServer::hello(TenantSession& session, const gpurota_msg_hello& message) {
  sessions_.destroy_ended();  // an ended session may be an earlier one of this process
  const std::uint32_t seq = message.header.seq;
  const LeaseEntry* entry = nullptr;
  if (const std::uint32_t status = admission_.admit(session, message, entry);
      status != GPUROTA_OK) {
    return refuse(session, seq, status);
  }
  auto place = admission_.place_for(session, message, *entry);
  auto added = place ? add_tenant(session, message, *entry, std::move(*place))
                     : tl::unexpected(std::move(place).error());
  if (!added && added.error().code == Code::kLimit) {
    parts_.records.on_too_many_processes(entry->lease, session.peer.process.pid,
                                         added.error().message);
    return refuse(session, seq, GPUROTA_REFUSED_BUSY);
  }
  if (!added) {
    // To the library, this looks like a daemon that is away, so the library tries again.
    return sessions_.end(session, "it cannot be admitted: " + added.error().message);
  }
  session.hello_deadline.reset();
  Tenant& tenant = **added;
  if (parts_.roster.add(tenant.lease, tenant.process.id, tenant.id, parts_.loop.now())) {
    for (const GpuUuid& gpu : tenant.slots) parts_.samples.sample_soon(gpu);
  }
  const auto event = sessions_.open_event_socket(tenant);
  if (!event) return sessions_.end(session, event.error().message);
  accounts_.publish(tenant.lease);
  if (!welcome(tenant, seq, *event)) {
    return sessions_.end(session, "it did not take the welcome");
  }
  latency_.on_connected(*entry);
  shares_.refresh();
  if (parts_.on_connected) parts_.on_connected(tenant);
}

bool TenantServer::welcome(Tenant& tenant, std::uint32_t seq, const Fd& event) {
  auto welcome = make_message<gpurota_msg_welcome>(GPUROTA_MSG_WELCOME, seq);
  welcome.version = GPUROTA_WIRE_VERSION;
  welcome.status = GPUROTA_OK;
  welcome.tenant = tenant.id.value;
  welcome.features = GPUROTA_FEATURE_PROCESSES | GPUROTA_FEATURE_OPEN | GPUROTA_FEATURE_HOLDING;
  if (tenant.swap) welcome.features |= GPUROTA_FEATURE_SWAP;
  if (!parts_.config.program_notices) welcome.features |= GPUROTA_FEATURE_QUIET;
  const LeaseEntry* const entry = parts_.tables.find(tenant.lease);
  const bool expired = entry && entry->lease.state == LeaseState::kExpired;
  if (expired) welcome.features |= GPUROTA_FEATURE_EXPIRED;
  const std::array fds{tenant.page->fd(), event.get()};
  const bool taken = send_message(tenant.session->fd.get(), welcome, fds);
  tenant.page->close_fd();
  return taken;
}

Result<Tenant*> TenantServer::add_tenant(TenantSession& session, const gpurota_msg_hello& hello,
                                         const LeaseEntry& entry, TenantPlace place) {
  auto tenant = std::make_unique<Tenant>();
  tenant->place = std::move(place);
  tenant->id = table_.next_id();
  tenant->lease = entry.lease.id;
  tenant->session = &session;
  tenant->swap = entry.lease.swap();
  tenant->has_latency_classes = (hello.features & (tenant->swap ? GPUROTA_FEATURE_SWAP_LATENCY
                                                                : GPUROTA_FEATURE_LATENCY)) != 0;
  tenant->has_windows = (hello.features & GPUROTA_FEATURE_WINDOWS) != 0;
  tenant->has_parking = (hello.features & GPUROTA_FEATURE_PARK) != 0;
  tenant->user = session.peer.uid;
  if (hello.held_count == 0) tenant->refused = 0;
  for (const LeaseGpu& gpu : entry.lease.gpus) tenant->slots.push_back(gpu.uuid);
  const TenantId id = tenant->id;
  GPUROTA_ASSIGN_OR_RETURN(
      tenant->process, track(parts_.processes, session.peer.process, [this, id] { on_death(id); }));
  GPUROTA_ASSIGN_OR_RETURN(sys::SharedPage page, sys::SharedPage::make());
  tenant->page.emplace(std::move(page));
  lay_out_page(tenant->shared(), tenant->slots);

  std::vector<lease::HeldMemory> held = read_held(*tenant, hello);
  for (const lease::HeldMemory& memory : held) {
    assume_use(tenant->shared(), *tenant->slot_of(memory.gpu), memory.granted);
  }
  parts_.roster.recall(entry.lease.id, tenant->process.id, held);
  parts_.grants.add_tenant(id, entry.lease.id, held);
  supersede_by(*tenant);
  if (tenant->swap) parts_.swap.add(id, entry.lease, session.peer.process, held);
  // Ignore an error: the tenant holds the process too.
  (void)parts_.leases.add_process(entry.lease.id, session.peer.process);
  session.tenant = tenant.get();
  return &table_.add(std::move(tenant));
}

// A process that connects again reports what it holds, which replaces the old account.
void TenantServer::supersede_by(Tenant& newcomer) {
  std::vector<Tenant*> old;
  for (const auto& [id, tenant] : table_.of_lease(newcomer.lease)) {
    if (tenant->process.id == newcomer.process.id && !tenant->session && !tenant->dead)
      old.push_back(tenant);
  }
  for (Tenant* const before : old) {
    parts_.grants.replace(before->id, newcomer.id);
    parts_.records.on_refused_allocations(before->newly_refused());
    newcomer.refused = before->refused;
    erase(*before);
  }
}

void TenantServer::on_death(TenantId id) {
  Tenant* const tenant = table_.find(id);
  if (!tenant || !table_.mark_dead(*tenant)) return;
  if (tenant->session) sessions_.end(*tenant->session, "");
  const LeaseId lease = tenant->lease;
  if (tenant->swap) parts_.swap.on_death(tenant->process.pid());
  accounts_.carry_out(parts_.grants.mark_dead(id, parts_.loop.now()));
  for (const GpuUuid& gpu : tenant->slots) parts_.samples.sample_soon(gpu);
  forget_settled();
  parts_.leases.on_process_death(lease);
}

// Erases dead tenants whose memory is back on all GPUs.
void TenantServer::forget_settled() {
  for (Tenant* const tenant : table_.dead()) {
    const bool moves = tenant->swap && parts_.swap.counts(tenant->process.pid());
    if (moves || parts_.grants.counts(tenant->id)) continue;
    parts_.grants.forget(tenant->id);
    erase(*tenant);
  }
}

void TenantServer::erase(Tenant& tenant) {
  parts_.records.on_refused_allocations(tenant.newly_refused());
  parts_.roster.remove(tenant.lease, tenant.process.id, tenant.id);
  shares_.forget(tenant);
  table_.erase(tenant);
  latency_.refresh();
}

void TenantServer::on_lease_change(const LeaseEntry& entry, bool gone) {
  latency_.on_lease_change(entry, gone);
  shares_.refresh();
  if (!gone) {
    parts_.swap.on_lease_change(entry.lease);
    accounts_.publish(entry.lease.id);
    return accounts_.carry_out(parts_.grants.recall_excess(entry.lease.id));
  }
  parts_.swap.on_lease_gone(entry.lease.id);
  for (auto left = table_.of_lease(entry.lease.id); const auto& [id, tenant] : left) {
    if (TenantSession* const session = tenant->session) sessions_.end(*session, "");
    erase(*tenant);
  }
  accounts_.schedule();
}

void TenantServer::after_sample(const GpuSample& sample, TimePoint taken,
                                const std::map<LeaseId, Bytes>& outsiders) {
  accounts_.after_sample(sample, taken, outsiders);
  latency_.retry();
  shares_.retry();
  held_back_.sample(parts_.loop.now());
  forget_settled();
}

}  // namespace gpurota::daemon
