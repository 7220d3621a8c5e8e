// What is seen of the tenants of swap leases beside what they say: their death, whether they are stopped,
// and what the driver counts of them. The other half of swap_tenants.cpp.
#include "base/log.h"
#include "daemon/tenants/swap_tenants.h"

#include <algorithm>

namespace gpurota::daemon {
namespace {

// An order that is not carried out within this may be one that cannot be: a look at the process costs
// about 10 µs, and is repeated as often while it lasts.
constexpr Duration kPatience = std::chrono::milliseconds(20);
// What is held beside is believed when so many looks agree: 1 s at the default period.
constexpr std::size_t kAgreeingLooks = 4;

}  // namespace

void SwapTenants::on_death(pid_t pid) {
  std::vector<TenantId> ids;
  for (const auto& [id, tenant] : tenants_) {
    if (tenant->pid == pid && !tenant->dead) ids.push_back(id);
  }
  // An earlier connection of the process may be what turns know of it.
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
    for (const Memory& memory : tenant.memory) parts_.look_soon(memory.gpu);
    parts_.turns.feed(sched::TenantDied{id});
  }
  update_terms();
}

bool SwapTenants::moves(const Tenant& tenant) {
  return std::any_of(tenant.memory.begin(), tenant.memory.end(), [](const Memory& m) {
    return !m.ordered[0].is_zero() || !m.ordered[1].is_zero();
  });
}

bool SwapTenants::owes(const Tenant& tenant) {
  if (!tenant.here || !tenant.connected || tenant.dead) return false;
  return moves(tenant) || tenant.gate_seen != tenant.gate_sent || !tenant.outbox.empty();
}

// Remembers since when it owes us something, and sees to it that it is looked at.
void SwapTenants::expect(Tenant& tenant) {
  if (!owes(tenant)) {
    tenant.asked.reset();
  } else if (!tenant.asked) {
    tenant.asked = parts_.loop.now();
  }
  const bool watched = tenant.asked || tenant.stopped || tenant.stuck;
  if (stopped_timer_ || !watched) return;
  auto timer = parts_.loop.add_timer(parts_.loop.now() + kPatience, ports::Urgency::kSchedule,
                                     [this] { look_for_stopped(); });
  if (timer) stopped_timer_ = std::move(*timer);
}

void SwapTenants::look_for_stopped() {
  stopped_timer_.reset();
  const TimePoint now = parts_.loop.now();
  std::vector<TenantId> asked;
  for (const auto& [id, tenant] : tenants_) {
    const bool silent = tenant->asked && now >= *tenant->asked + kPatience;
    if (silent || tenant->stopped || tenant->stuck || tenant->moving) asked.push_back(id);
  }
  for (const TenantId id : asked) {
    Tenant* const tenant = find(id);
    if (!tenant || tenant->dead) continue;
    const Duration patience = parts_.config.turns.yield_deadline;
    const bool stuck = tenant->moving && now >= *tenant->moving + patience;
    set_reachable(*tenant, parts_.processes.is_stopped(tenant->pid), stuck);
  }
  for (const auto& [id, tenant] : tenants_) {
    if (!tenant->dead) expect(*tenant);
  }
}

void SwapTenants::set_reachable(Tenant& tenant, bool stopped, bool stuck) {
  if (stopped == tenant.stopped && stuck == tenant.stuck) return;
  const bool was = !tenant.stopped && !tenant.stuck;
  const bool stop = stuck && !tenant.stuck && !stopped && parts_.config.turns.stop_at_deadline;
  tenant.stopped = stopped;
  tenant.stuck = stuck;
  if (!tenant.connected) return;
  const bool reachable = !stopped && !stuck;
  const char* const what = stopped ? "a tenant is stopped"
                           : stuck ? "a tenant does not move its memory"
                                   : "a tenant continues";
  log::info(what, {{"pid", tenant.pid}, {"lease", to_string(tenant.lease)}});
  const sched::ReportTrouble trouble{
      stopped ? sched::Trouble::kUnreachable : sched::Trouble::kNotYielding, tenant.lease,
      tenant.id, stop};
  if (was != reachable) parts_.turns.feed(sched::Reachable{tenant.id, reachable});
  if (!reachable) parts_.turns.report(trouble);
}

Maybe<const sched::Holding> SwapTenants::holding(const Tenant& tenant, const Memory& memory) const {
  const sched::Residency& all = parts_.turns.turns().residency();
  const auto slot = all.slot_of(memory.gpu);
  return slot ? all.find(tenant.id, *slot) : Maybe<const sched::Holding>();
}

// What turns take it to hold, while nothing of it is on its way.
std::optional<Bytes> SwapTenants::told(const Tenant& tenant, const Memory& memory) const {
  const sched::Holding* held = holding(tenant, memory).if_there();
  if (!held || !held->coming.is_zero() || !held->leaving.is_zero()) return std::nullopt;
  return held->resident + held->wired;
}

void SwapTenants::before_look(const GpuUuid& gpu) {
  for (const auto& [id, tenant] : tenants_) {
    for (Memory& memory : tenant->memory) {
      if (memory.gpu == gpu) memory.told_before = told(*tenant, memory);
    }
  }
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

void SwapTenants::after_look(const GpuSample& sample, TimePoint taken) {
  std::vector<TenantId> gone;
  std::vector<TenantId> ids;
  for (const auto& [id, tenant] : tenants_) ids.push_back(id);
  for (const TenantId id : ids) {
    Tenant* const tenant = find(id);
    if (!tenant) continue;
    for (Memory& memory : tenant->memory) {
      if (memory.gpu == sample.uuid) measure(*tenant, memory, sample, taken);
    }
    const bool listed = std::any_of(tenant->memory.begin(), tenant->memory.end(),
                                    [](const Memory& memory) { return memory.listed; });
    if (tenant->dead && !listed) gone.push_back(id);
  }
  for (const TenantId id : gone) forget(id);
  update_terms();
}

void SwapTenants::forget(TenantId id) {
  tenants_.erase(id);
  parts_.turns.feed(sched::RemoveTenant{id});
}

void SwapTenants::measure(Tenant& tenant, Memory& memory, const GpuSample& sample,
                          TimePoint taken) {
  std::optional<Bytes> held;
  bool listed = false;
  for (const GpuProcess& process : sample.processes) {
    if (process.pid != tenant.pid) continue;
    listed = true;
    held = process.used;
  }
  if (tenant.dead) {
    if (taken >= tenant.died) memory.listed = listed;
    return;
  }
  if (!tenant.here || !held) return;
  // Only while it is at rest: what is in motion is counted as if it were there already.
  const auto now = told(tenant, memory);
  if (!now || !memory.told_before) return;
  const bool waits = memory.context_since && !memory.unmeasured.is_zero() && !memory.came_back;
  if (waits && taken >= *memory.context_since) {
    measure_context(tenant, memory, *held);
    return;
  }
  const Bytes told_most = std::max(*now, *memory.told_before);
  const Bytes contexts = memory.came_back ? memory.unmeasured : Bytes();
  std::deque<Bytes>& looks = memory.beside;
  looks.push_back(*held + contexts - told_most);
  if (looks.size() > kAgreeingLooks) looks.pop_front();
  if (looks.size() < kAgreeingLooks) return;
  // It goes on meanwhile: what it is just allocating is granted and not held yet.
  if (memory.came_back) {
    return settle_contexts(tenant, memory, *std::max_element(looks.begin(), looks.end()));
  }
  const sched::Holding* books = holding(tenant, memory).if_there();
  if (!books) return;
  const Bytes known = books->beside;
  const Bytes least = *std::min_element(looks.begin(), looks.end());
  const Bytes most = *std::max_element(looks.begin(), looks.end());
  const Bytes settled = std::clamp(known, least, most);
  if (settled != known) parts_.turns.feed(sched::Measured{tenant.id, memory.gpu, settled});
}

// A context was granted what one may take; this is what it takes. The program waits meanwhile.
void SwapTenants::measure_context(Tenant& tenant, Memory& memory, Bytes held) {
  const sched::Holding* books = holding(tenant, memory).if_there();
  if (!books) return;
  const Bytes takes = held - (books->resident + books->wired - memory.unmeasured);
  if (memory.contexts == 1 && !takes.is_zero()) {
    parts_.grants.learn_context_cost(memory.gpu, takes);
  }
  settle_contexts(tenant, memory, takes);
}

void SwapTenants::settle_contexts(Tenant& tenant, Memory& memory, Bytes takes) {
  const Bytes granted = memory.unmeasured;
  memory.unmeasured = Bytes();
  memory.context_since.reset();
  memory.came_back = false;
  memory.beside.clear();
  if (takes.is_zero()) return;
  if (takes < granted) {
    parts_.turns.feed(sched::Shrink{tenant.id, memory.gpu, {}, {}, granted - takes});
  } else if (takes > granted) {
    parts_.turns.feed(sched::Measured{tenant.id, memory.gpu, takes - granted});
  }
}

bool SwapTenants::counts(pid_t pid) const {
  return std::any_of(tenants_.begin(), tenants_.end(),
                     [&](const auto& entry) { return entry.second->pid == pid; });
}

bool SwapTenants::is_about_to_tell(pid_t pid) const {
  bool told = false;
  for (const auto& [id, tenant] : tenants_) told |= tenant->pid == pid && tenant->here;
  return counts(pid) && !told;
}

bool SwapTenants::has_dead(LeaseId lease) const {
  return std::any_of(tenants_.begin(), tenants_.end(), [&](const auto& entry) {
    return entry.second->lease == lease && entry.second->dead;
  });
}

bool SwapTenants::expects_look(const GpuUuid& gpu) const {
  return std::any_of(tenants_.begin(), tenants_.end(), [&](const auto& entry) {
    return std::any_of(entry.second->memory.begin(), entry.second->memory.end(),
                       [&](const Memory& memory) {
                         const bool context = memory.context_since && !memory.unmeasured.is_zero();
                         return memory.gpu == gpu && (entry.second->dead || context);
                       });
  });
}

}  // namespace gpurota::daemon
