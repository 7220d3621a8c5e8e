#include "daemon/tenants/tenant_accounts.h"

#include "ipc/packet.h"

#include <algorithm>
#include <utility>

namespace gpurota::daemon {
namespace {

// How many earlier messages an answer waits for: more than a socket of the default size holds (277
// small packets). A tenant that always keeps its socket full gets its answer after this many.
constexpr int kMostBeforeAnswer = 512;

// The headroom that the tenant reports, bounded by its grants: only a hint.
Bytes own_slack(const Tenant& tenant, std::size_t slot, const lease::Account& account) {
  if (!tenant.session) return Bytes();
  return std::min(read_use(tenant.shared(), slot).headroom, account.holding(tenant.id).granted);
}

}  // namespace

bool TenantAccounts::grow(Tenant& tenant, const gpurota_msg_grow& message) {
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

bool TenantAccounts::give_back(Tenant& tenant, const gpurota_msg_return& message) {
  if (message.slot >= tenant.slots.size() || tenant.swap) return false;
  carry_out(parts_.grants.give_back(tenant.id, tenant.slots[message.slot], Bytes(message.bytes),
                                    message.header.seq, message.grown_seq, parts_.loop.now()));
  return true;
}

// A program of a swap lease reports freed memory on the event socket, and asks on the call socket.
// The answer must count memory that was freed before the question, so the answer waits until the
// event socket has been read.
bool TenantAccounts::ask(Tenant& tenant, const gpurota_msg_query& message) {
  if (message.slot >= tenant.slots.size() || tenant.asked) return false;  // one at a time
  if (!tenant.swap) return query(tenant, message.slot, message.header.seq);
  tenant.asked = {message.slot, message.header.seq, kMostBeforeAnswer};
  answer_asked(tenant.id);
  return true;
}

// The loop returns after each message, so a tenant with many messages delays only itself.
void TenantAccounts::answer_asked(TenantId id) {
  Tenant* const tenant = parts_.table.find(id);
  if (!tenant || !tenant->session || !tenant->asked) return;
  if (tenant->event && ipc::has_packet(tenant->event.get()) && tenant->asked->patience-- > 0)
    return;
  const Tenant::Asked asked = *tenant->asked;
  tenant->asked.reset();
  if (!query(*tenant, asked.slot, asked.seq)) {
    parts_.sessions.end(*tenant->session, kDoesNotRead);
  }
}

bool TenantAccounts::query(Tenant& tenant, std::uint32_t slot, std::uint32_t seq) {
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

bool TenantAccounts::contexts(Tenant& tenant, const gpurota_msg_contexts& message) {
  if (message.slot >= tenant.slots.size()) return false;
  const GpuUuid& gpu = tenant.slots[message.slot];
  const TimePoint now = parts_.loop.now();
  const int count = static_cast<int>(std::min<std::uint32_t>(message.count, 4096));
  parts_.grants.set_contexts(tenant.id, gpu, count, now);
  if (tenant.swap) parts_.swap.on_contexts(tenant.id, gpu, count);
  if (tenant.awaiting.size() >= GPUROTA_SLOTS) return false;
  tenant.awaiting.push_back({message.slot, message.header.seq, now});
  parts_.samples.sample_soon(gpu);
  return true;
}

bool TenantAccounts::holding(Tenant& tenant, const gpurota_msg_holding& message) {
  if (message.slot >= tenant.slots.size()) return false;
  const GpuUuid& gpu = tenant.slots[message.slot];
  if (message.kind == GPUROTA_HOLDING_END) {
    carry_out(parts_.grants.end_shared(tenant.id, gpu, {message.key, Bytes(message.returned_bytes)},
                                       parts_.loop.now()));
    return true;
  }
  auto answer = make_message<gpurota_msg_counted>(GPUROTA_MSG_COUNTED, message.header.seq);
  answer.slot = message.slot;
  answer.status = GPUROTA_OK;
  answer.bytes = message.bytes;
  if (message.kind == GPUROTA_HOLDING_MINE) {
    parts_.grants.hold_shared(tenant.id, gpu, message.key, Bytes(message.bytes));
  } else {
    const auto joined = parts_.grants.join_shared(tenant.id, gpu, message.key);
    answer.status = joined.is_counted ? GPUROTA_OK : GPUROTA_REFUSED_LIMIT;
    answer.bytes = joined.bytes.count();
  }
  return send_message(tenant.session->fd.get(), answer);
}

void TenantAccounts::answer_measured(const GpuUuid& gpu, TimePoint taken) {
  for (const auto& each : parts_.table.all()) {
    const auto& tenant = each.second;
    std::vector<Tenant::Awaiting> due;
    std::erase_if(tenant->awaiting, [&](const Tenant::Awaiting& waiting) {
      const bool is_due = tenant->slots[waiting.slot] == gpu && taken >= waiting.since;
      if (is_due) due.push_back(waiting);
      return is_due;
    });
    for (const Tenant::Awaiting& waiting : due) {
      if (!tenant->session || query(*tenant, waiting.slot, waiting.seq)) continue;
      parts_.sessions.end(*tenant->session, kDoesNotRead);
    }
  }
}

void TenantAccounts::carry_out(const lease::AddressedGrantActions& actions) {
  for (const auto& [gpu, action] : actions) {
    const TenantId id = std::visit([](const auto& a) { return a.tenant; }, action);
    Tenant* const tenant = parts_.table.find(id);
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
        parts_.sessions.end(*tenant->session, kDoesNotRead);
      }
      if (reply->status == lease::GrantStatus::kRefused) {
        parts_.records.on_refusal(tenant->lease, tenant->process.pid(), gpu, tenant->last_asked);
      }
    } else if (tenant->event) {
      auto recall = make_message<gpurota_msg_recall>(GPUROTA_MSG_RECALL,
                                                     std::get<lease::GrantRecall>(action).seq);
      recall.slot = static_cast<std::uint32_t>(*slot);
      // Ignore an error: a tenant whose socket is full is stopped, and is counted in full when the
      // time for its answer is over.
      (void)send_message(tenant->event.get(), recall);
    }
  }
  schedule();
}

void TenantAccounts::schedule() {
  const auto when = parts_.grants.next_deadline();
  timer_.reset();
  if (!when) return;
  timer_ = parts_.loop.add_timer(*when, ports::Urgency::kSchedule,
                                 [this] { carry_out(parts_.grants.serve(parts_.loop.now())); });
}

void TenantAccounts::before_sample(const GpuUuid& gpu) {
  parts_.swap.before_sample(gpu);
  for (const auto& [id, tenant] : parts_.table.all()) {
    const auto slot = tenant->slot_of(gpu);
    if (!slot) continue;
    tenant->used_before.resize(tenant->slots.size());
    tenant->used_before[*slot] = read_use(tenant->shared(), *slot).used;
    parts_.records.on_refused_allocations(tenant->newly_refused());
  }
}

void TenantAccounts::after_sample(const GpuSample& sample, TimePoint taken,
                                  const std::map<LeaseId, Bytes>& outsiders) {
  std::map<LeaseId, std::vector<lease::GrantBook::TenantMeasurement>> by_lease;
  for (const auto& [id, entry] : parts_.tables.leases) {
    if (parts_.grants.find(id, sample.uuid)) by_lease[id];
  }
  for (const auto& [id, tenant] : parts_.table.all()) {
    const auto slot = tenant->slot_of(sample.uuid);
    if (!slot) continue;
    lease::Measurement seen;
    seen.taken = taken;
    seen.used_hint = read_use(tenant->shared(), *slot).used;
    if (tenant->used_before.size() > *slot) {
      seen.used_hint = std::max(seen.used_hint, tenant->used_before[*slot]);
    }
    seen.imported_hint = read_use(tenant->shared(), *slot).imported;
    for (const GpuProcess& process : sample.processes) {
      if (process.pid != tenant->process.pid()) continue;
      seen.listed = true;
      seen.held = process.used;
    }
    by_lease[tenant->lease].push_back({id, seen});
  }
  for (const auto& [lease, measurements] : by_lease) {
    // Until this sample, a tenant that has connected again was counted as an outsider.
    if (parts_.roster.was_complete(lease, taken)) parts_.grants.release_hold(lease, sample.uuid);
    const auto others = outsiders.find(lease);
    carry_out(parts_.grants.measure(lease, sample.uuid, measurements,
                                    others == outsiders.end() ? Bytes() : others->second,
                                    parts_.loop.now()));
    // Memory that was freed since the lease's limit was lowered must not be allocated again.
    carry_out(parts_.grants.recall_excess(lease));
    publish(lease);
  }
  parts_.swap.after_sample(sample, taken);
  for (const auto& [id, entry] : parts_.tables.leases) {
    if (entry.lease.swap() && entry.lease.find_gpu(sample.uuid)) publish(id);
  }
  answer_measured(sample.uuid, taken);
}

void TenantAccounts::publish(LeaseId lease) {
  std::map<GpuUuid, Bytes> slack_of_all;
  for (const auto& [id, tenant] : parts_.table.of_lease(lease)) {
    if (tenant->dead) continue;
    for (std::size_t slot = 0; slot < tenant->slots.size(); ++slot) {
      const GpuUuid& gpu = tenant->slots[slot];
      if (tenant->swap) {
        const SwapTenants::Figures figures = parts_.swap.figures(lease, gpu);
        daemon::publish(tenant->shared(), slot, figures.limit, figures.available);
        continue;
      }
      const lease::Account* account = parts_.grants.find(lease, gpu).if_there();
      if (!account) continue;
      const auto [all, is_new] = slack_of_all.try_emplace(gpu);
      if (is_new) all->second = slack(lease, gpu, {});
      const Bytes others = all->second - std::min(all->second, own_slack(*tenant, slot, *account));
      daemon::publish(tenant->shared(), slot, account->limit(), account->available() + others);
    }
  }
}

Bytes TenantAccounts::slack(LeaseId lease, const GpuUuid& gpu, TenantId but) const {
  Bytes sum;
  const lease::Account* account = parts_.grants.find(lease, gpu).if_there();
  if (!account) return sum;
  for (const auto& [id, tenant] : parts_.table.of_lease(lease)) {
    const auto slot = id == but ? std::nullopt : tenant->slot_of(gpu);
    if (slot) sum += own_slack(*tenant, *slot, *account);
  }
  return sum;
}

}  // namespace gpurota::daemon
