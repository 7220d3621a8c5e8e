#include "sched/turn_show.h"

#include "sched/seconds.h"
#include "sched/turn_decide.h"
#include "sched/turn_watch.h"

#include <algorithm>
#include <cmath>

namespace gpurota::sched {

namespace {

void earlier(std::optional<TimePoint>& best, TimePoint when, TimePoint now) {
  if (when > now && when != TimePoint::max() && (!best || when < *best)) best = when;
}

// When to count the lease's owed time again: after a second at most, and sooner if a bound is
// nearer.
Duration owed_step(const TurnTable& table, const LeaseState& lease) {
  Duration step = std::chrono::seconds(1);
  const auto nearer = [&](Duration left) {
    if (left > Duration::zero()) step = std::min(step, left);
  };
  if (lease.is_held_up) nearer(table.settings.stopped_deadline - lease.held_up);
  const Duration owed = table.owed(lease);
  nearer(table.settings.longest_drain - owed);
  nearer(table.settings.longest_drain / 2 - owed);
  return step;
}

Duration yield_left(const TurnTable& table, const LeaseState& lease) {
  return lease.closed_awake + table.settings.yield_deadline - table.awake;
}

Wait wait_of(const TurnTable& table, const LeaseState& lease) {
  if (table.on_hold()) return Wait::kRestart;
  if (lease.phase == Phase::kEntering) {
    for (const auto& [id, other] : table.leases) {
      if (other.phase == Phase::kLeaving && table.conflict(lease, other)) return Wait::kDraining;
    }
    return Wait::kMoving;
  }
  if (lease.aside && lease.phase == Phase::kApart) return Wait::kAside;
  if (lease.phase == Phase::kHolding || !table.wants(lease)) return Wait::kNothing;
  const Wait found = hindrance(table, lease);
  return found == Wait::kNothing ? Wait::kTurn : found;
}

// The latest time at which `holder` has to leave for `waiting`. TimePoint::max(): never, while
// `holder` has work. A holder that has had less time than `waiting` takes one quantum after another
// until both have had equal time. A holder of higher priority stays until the priority budget is
// spent. A holder that runs out of work leaves earlier.
TimePoint end_of_turn(const TurnTable& table, const LeaseState& holder, const LeaseState& waiting) {
  const Duration turn = quantum(table, holder);
  const double had = holder.clock.read(table.now, holder.terms.weight);
  const double ahead = waiting.clock.read(table.now, waiting.terms.weight) - had;
  const double until_equal = seconds(table.now - holder.turn_since) + ahead * holder.terms.weight;
  const double quanta = std::max(1.0, std::ceil(until_equal / seconds(turn)));
  TimePoint end = holder.turn_since + from_seconds(seconds(turn) * quanta);
  if (effective_priority(table, holder) <= effective_priority(table, waiting)) return end;
  for (GpuSlot gpu : table.turn_gpus(holder)) {
    end = std::max(end, table.gpus[gpu.value].budget.turns_at(true));
  }
  return end;
}

}  // namespace

std::optional<TimePoint> next_deadline(const TurnTable& table) {
  if (table.on_hold()) return table.held_until;
  std::optional<TimePoint> best;
  for (const GpuState& gpu : table.gpus) {
    if (gpu.fits_since) earlier(best, *gpu.fits_since + table.settings.calm, table.now);
    if (gpu.contended) earlier(best, gpu.budget.turns_at(gpu.draining), table.now);
  }
  for (const auto& [id, tenant] : table.tenants) earlier(best, tenant.retry_at, table.now);
  for (const auto& [id, lease] : table.leases) {
    earlier(best, lease.retry_at, table.now);
    if (lease.no_room_since && !lease.no_room_reported) {
      earlier(best, *lease.no_room_since + kNoRoomLasts, table.now);
    }
    // Owed time is counted only when an event comes in, so ask for a Tick.
    if (table.owes(lease)) earlier(best, table.now + owed_step(table, lease), table.now);
    if (lease.phase == Phase::kLeaving) {
      earlier(best, lease.letting.since + lease.letting.patience, table.now);
      earlier(best, lease.closed_at + table.settings.drain_patience, table.now);
      if (!lease.reported) earlier(best, table.now + yield_left(table, lease), table.now);
    }
    if (lease.phase != Phase::kHolding) continue;
    for (const auto& [other_id, other] : table.leases) {
      if (!waits_for(table, other, lease)) continue;
      earlier(best, lease.turn_since + quantum(table, lease), table.now);
      if (!lease.idle_since) continue;
      earlier(best, *lease.idle_since + idle_before_release(table, lease, other), table.now);
    }
  }
  return best;
}

std::optional<LeaseView> explain_lease(const TurnTable& table, LeaseId id, TimePoint now) {
  const auto found = table.leases.find(id);
  if (found == table.leases.end()) return std::nullopt;
  const LeaseState& lease = found->second;
  LeaseView view;
  view.lease = id;
  view.phase = lease.phase;
  view.takes_turns = !table.turn_gpus(lease).empty();
  view.above_soft = lease.above_soft;
  view.wait = wait_of(table, lease);
  view.quantum = quantum(table, lease);
  for (GpuSlot gpu : lease.gpus) {
    const Holding h = table.memory.of_lease(id, gpu);
    view.gpus.push_back({table.memory.uuid(gpu), h.resident, h.out(), h.wired});
  }
  for (TenantId tenant : lease.tenants) {
    if (!table.tenants.at(tenant).reachable) view.process = tenant;
  }
  if (view.wait == Wait::kHeldByStopped) {
    view.process = has_most_of(table, lease);
    if (const auto it = table.tenants.find(view.process); it != table.tenants.end())
      view.behind = it->second.lease;
    view.earliest = held_up_until(table, lease);
  }
  if (view.wait != Wait::kTurn && view.wait != Wait::kDraining) return view;
  for (const auto& [other_id, other] : table.leases) {
    if (other_id == id || !table.conflict(lease, other)) continue;
    const bool waits = other.phase == Phase::kApart && table.wants(other) && eligible(table, other);
    if (waits && goes_before(table, other, lease)) ++view.position;
    if (other.phase == Phase::kApart || other.phase == Phase::kEntering) continue;
    view.behind = other_id;
    const Duration bound = table.settings.longest_drain;
    if (other.phase == Phase::kLeaving && bound != Duration::zero()) {
      const TimePoint end = now + std::max(bound - table.owed(other), Duration::zero());
      view.earliest = std::max(view.earliest.value_or(now), end);
    }
    if (other.phase != Phase::kHolding) continue;
    view.earliest = std::max(view.earliest.value_or(now), end_of_turn(table, other, lease));
  }
  if (view.earliest == TimePoint::max()) view.earliest.reset();
  ++view.position;
  return view;
}

// `waits` is true exactly where wait_of() is none of kNothing, kRestart and kAside.
std::optional<LeaseTurn> turn_of(const TurnTable& table, LeaseId id) {
  const auto found = table.leases.find(id);
  if (found == table.leases.end()) return std::nullopt;
  const LeaseState& lease = found->second;
  LeaseTurn turn;
  turn.takes_turns = !table.turn_gpus(lease).empty();
  turn.holds = lease.phase == Phase::kHolding || lease.phase == Phase::kEntering;
  turn.waits = !table.on_hold() && (lease.phase == Phase::kEntering ||
                                    (lease.phase != Phase::kHolding && table.wants(lease)));
  for (const GpuSlot gpu : lease.gpus) turn.out += table.memory.of_lease(id, gpu).out();
  return turn;
}

std::vector<GpuView> view_gpus(const TurnTable& table) {
  std::vector<GpuView> views;
  for (std::uint32_t i = 0; i < table.gpus.size(); ++i) {
    const GpuSlot slot{i};
    if (table.memory.is_lost(slot)) continue;
    GpuView view;
    view.settings = table.gpus[i].settings;
    view.takes_turns = table.gpus[i].contended;
    view.used = table.memory.used(slot);
    view.deficit = table.memory.deficit(slot);
    view.switches = table.gpus[i].switches;
    view.counts = table.gpus[i].counts;
    view.since_switch = table.gpus[i].since_switch;
    std::vector<const LeaseState*> waiting;
    for (const auto& [id, lease] : table.leases) {
      const Slots gpus = table.turn_gpus(lease);
      if (std::find(gpus.begin(), gpus.end(), slot) == gpus.end()) continue;
      if (lease.phase == Phase::kApart && table.wants(lease)) waiting.push_back(&lease);
      if (lease.phase != Phase::kApart && lease.phase != Phase::kLeaving) view.holder = id;
    }
    std::sort(waiting.begin(), waiting.end(),
              [&](const LeaseState* a, const LeaseState* b) { return goes_before(table, *a, *b); });
    for (const LeaseState* lease : waiting) view.waiting.push_back(lease->terms.id);
    views.push_back(std::move(view));
  }
  return views;
}

}  // namespace gpurota::sched
