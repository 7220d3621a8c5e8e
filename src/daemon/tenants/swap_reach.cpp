#include "daemon/tenants/swap_reach.h"

#include "base/log.h"

#include <vector>

namespace gpurota::daemon {
namespace {

// If a tenant has not answered an order for this long, the tenant may be unable to carry out the
// order, so its process is checked. A check costs about 10 µs, and is repeated at this period as
// long as the order is open.
constexpr Duration kPatience = std::chrono::milliseconds(20);

bool owes(const SwapTenant& tenant) {
  if (!tenant.here || !tenant.connected || tenant.dead) return false;
  return tenant.moves() || tenant.gate_seen != tenant.gate_sent || !tenant.outbox.empty();
}

}  // namespace

void SwapReach::expect(SwapTenant& tenant) {
  if (!owes(tenant)) {
    tenant.asked.reset();
  } else if (!tenant.asked) {
    tenant.asked = parts_.loop.now();
  }
  const bool watched = tenant.asked || tenant.stopped || tenant.stuck;
  if (timer_ || !watched) return;
  timer_ = parts_.loop.add_timer(parts_.loop.now() + kPatience, ports::Urgency::kSchedule,
                                 [this] { find_stopped(); });
}

void SwapReach::find_stopped() {
  timer_.reset();
  const TimePoint now = parts_.loop.now();
  std::vector<TenantId> asked;
  for (const auto& [id, tenant] : tenants_) {
    const bool silent = tenant->asked && now >= *tenant->asked + kPatience;
    if (silent || tenant->stopped || tenant->stuck || tenant->moving) asked.push_back(id);
  }
  for (const TenantId id : asked) {
    const auto found = tenants_.find(id);
    SwapTenant* const tenant = found == tenants_.end() ? nullptr : found->second.get();
    if (!tenant || tenant->dead) continue;
    const Duration patience = parts_.config.turns.yield_deadline;
    const bool stuck = tenant->moving && now >= *tenant->moving + patience;
    set_reachable(*tenant, parts_.processes.is_stopped(tenant->pid()), stuck);
  }
  for (const auto& [id, tenant] : tenants_) {
    if (!tenant->dead) expect(*tenant);
  }
}

void SwapReach::set_reachable(SwapTenant& tenant, bool stopped, bool stuck) {
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
  log::info(what, {{"pid", tenant.pid()}, {"lease", to_string(tenant.lease)}});
  const sched::ReportTrouble trouble{
      stopped ? sched::Trouble::kUnreachable : sched::Trouble::kNotYielding,
      tenant.lease,
      tenant.id,
      stop,
      {},
      {}};
  if (was != reachable) parts_.turns.feed(sched::Reachable{tenant.id, reachable});
  if (!reachable) parts_.turns.report(trouble);
}

}  // namespace gpurota::daemon
