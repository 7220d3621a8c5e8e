#include "sched/turn_reader.h"

#include "sched/seconds.h"
#include "sched/turn_watch.h"

#include <algorithm>
#include <cmath>

namespace gpurota::sched {
namespace {

void earlier(std::optional<TimePoint>& best, TimePoint when, TimePoint now) {
  if (when > now && when != TimePoint::max() && (!best || when < *best)) best = when;
}

}  // namespace

std::optional<TimePoint> TurnReader::next_deadline() const {
  if (table_.on_hold()) return table_.held_until;
  std::optional<TimePoint> best;
  for (const GpuState& gpu : table_.gpus) {
    if (gpu.fits_since) earlier(best, *gpu.fits_since + table_.settings.calm, table_.now);
    if (gpu.contended) earlier(best, gpu.budget.turns_at(gpu.draining), table_.now);
  }
  for (const auto& [id, tenant] : table_.tenants) earlier(best, tenant.retry_at, table_.now);
  for (const auto& [id, lease] : table_.leases) {
    earlier(best, lease.retry_at, table_.now);
    if (lease.no_room_since && !lease.no_room_reported) {
      earlier(best, *lease.no_room_since + kNoRoomLasts, table_.now);
    }
    // What is owed counts only as far as events come in.
    if (table_.owes(lease)) earlier(best, table_.now + owed_step(lease), table_.now);
    if (lease.phase == Phase::kLeaving) {
      earlier(best, lease.letting.since + lease.letting.patience, table_.now);
      earlier(best, lease.closed_at + table_.settings.drain_patience, table_.now);
      if (!lease.reported) earlier(best, table_.now + yield_left(lease), table_.now);
    }
    if (lease.phase != Phase::kHolding) continue;
    for (const auto& [other_id, other] : table_.leases) {
      if (!obstacles_.waits_for(other, lease)) continue;
      earlier(best, lease.turn_since + length_.quantum(lease), table_.now);
      if (!lease.idle_since) continue;
      earlier(best, *lease.idle_since + length_.idle_before_release(lease, other), table_.now);
    }
  }
  return best;
}

// A second at most, and less if a bound is nearer.
Duration TurnReader::owed_step(const LeaseState& lease) const {
  Duration step = std::chrono::seconds(1);
  const auto nearer = [&](Duration left) {
    if (left > Duration::zero()) step = std::min(step, left);
  };
  if (lease.is_held_up) nearer(table_.settings.stopped_deadline - lease.held_up);
  const Duration owed = table_.owed(lease);
  nearer(table_.settings.longest_drain - owed);
  nearer(table_.settings.longest_drain / 2 - owed);
  return step;
}

Duration TurnReader::yield_left(const LeaseState& lease) const {
  return lease.closed_awake + table_.settings.yield_deadline - table_.awake;
}

Wait TurnReader::wait_of(const LeaseState& lease) const {
  if (table_.on_hold()) return Wait::kRestart;
  if (lease.phase == Phase::kEntering) {
    for (const auto& [id, other] : table_.leases) {
      if (other.phase == Phase::kLeaving && table_.conflict(lease, other)) return Wait::kDraining;
    }
    return Wait::kMoving;
  }
  if (lease.aside && lease.phase == Phase::kApart) return Wait::kAside;
  if (lease.phase == Phase::kHolding || !table_.wants(lease)) return Wait::kNothing;
  const Wait found = obstacles_.hindrance(lease);
  return found == Wait::kNothing ? Wait::kTurn : found;
}

std::optional<LeaseView> TurnReader::explain(LeaseId id, TimePoint now) const {
  const auto found = table_.leases.find(id);
  if (found == table_.leases.end()) return std::nullopt;
  const LeaseState& lease = found->second;
  LeaseView view;
  view.lease = id;
  view.phase = lease.phase;
  view.takes_turns = !table_.turn_gpus(lease).empty();
  view.above_soft = lease.above_soft;
  view.wait = wait_of(lease);
  view.quantum = length_.quantum(lease);
  for (GpuSlot gpu : lease.gpus) {
    const Holding h = table_.memory.of_lease(id, gpu);
    view.gpus.push_back({table_.memory.uuid(gpu), h.resident, h.out(), h.wired});
  }
  for (TenantId tenant : lease.tenants) {
    if (!table_.tenants.at(tenant).reachable) view.process = tenant;
  }
  if (view.wait == Wait::kHeldByStopped) {
    view.process = obstacles_.has_most_of(lease);
    if (const auto it = table_.tenants.find(view.process); it != table_.tenants.end())
      view.behind = it->second.lease;
    view.earliest = obstacles_.held_up_until(lease);
  }
  if (view.wait != Wait::kTurn && view.wait != Wait::kDraining) return view;
  for (const auto& [other_id, other] : table_.leases) {
    if (other_id == id || !table_.conflict(lease, other)) continue;
    const bool waits =
        other.phase == Phase::kApart && table_.wants(other) && obstacles_.eligible(other);
    if (waits && order_.goes_before(other, lease)) ++view.position;
    if (other.phase == Phase::kApart || other.phase == Phase::kEntering) continue;
    view.behind = other_id;
    const Duration bound = table_.settings.longest_drain;
    if (other.phase == Phase::kLeaving && bound != Duration::zero()) {
      const TimePoint end = now + std::max(bound - table_.owed(other), Duration::zero());
      view.earliest = std::max(view.earliest.value_or(now), end);
    }
    if (other.phase != Phase::kHolding) continue;
    view.earliest = std::max(view.earliest.value_or(now), end_of_turn(other, lease));
  }
  if (view.earliest == TimePoint::max()) view.earliest.reset();
  ++view.position;
  return view;
}

// That wait_of() is none of kNothing, kRestart and kAside: whatever hinders it, it waits.
std::optional<LeaseTurn> TurnReader::turn_of(LeaseId id) const {
  const auto found = table_.leases.find(id);
  if (found == table_.leases.end()) return std::nullopt;
  const LeaseState& lease = found->second;
  LeaseTurn turn;
  turn.takes_turns = !table_.turn_gpus(lease).empty();
  turn.holds = lease.phase == Phase::kHolding || lease.phase == Phase::kEntering;
  turn.waits = !table_.on_hold() && (lease.phase == Phase::kEntering ||
                                     (lease.phase != Phase::kHolding && table_.wants(lease)));
  for (const GpuSlot gpu : lease.gpus) turn.out += table_.memory.of_lease(id, gpu).out();
  return turn;
}

// A holder that has had less takes quantum after quantum until it has had as much, and one of a higher priority as long as
// the budget for that lasts, if they have work for so long.
TimePoint TurnReader::end_of_turn(const LeaseState& holder, const LeaseState& waiting) const {
  const Duration turn = length_.quantum(holder);
  const double had = holder.clock.read(table_.now, holder.terms.weight);
  const double ahead = waiting.clock.read(table_.now, waiting.terms.weight) - had;
  const double until_equal = seconds(table_.now - holder.turn_since) + ahead * holder.terms.weight;
  const double quanta = std::max(1.0, std::ceil(until_equal / seconds(turn)));
  TimePoint end = holder.turn_since + from_seconds(seconds(turn) * quanta);
  if (order_.effective_priority(holder) <= order_.effective_priority(waiting)) return end;
  for (GpuSlot gpu : table_.turn_gpus(holder)) {
    end = std::max(end, table_.gpus[gpu.value].budget.turns_at(true));
  }
  return end;
}

std::vector<GpuView> TurnReader::view() const {
  std::vector<GpuView> views;
  for (std::uint32_t i = 0; i < table_.gpus.size(); ++i) {
    const GpuSlot slot{i};
    if (table_.memory.is_lost(slot)) continue;
    GpuView view;
    view.settings = table_.gpus[i].settings;
    view.takes_turns = table_.gpus[i].contended;
    view.used = table_.memory.used(slot);
    view.deficit = table_.memory.deficit(slot);
    view.switches = table_.gpus[i].switches;
    view.counts = table_.gpus[i].counts;
    view.since_switch = table_.gpus[i].since_switch;
    std::vector<const LeaseState*> waiting;
    for (const auto& [id, lease] : table_.leases) {
      const Slots gpus = table_.turn_gpus(lease);
      if (std::find(gpus.begin(), gpus.end(), slot) == gpus.end()) continue;
      if (lease.phase == Phase::kApart && table_.wants(lease)) waiting.push_back(&lease);
      if (lease.phase != Phase::kApart && lease.phase != Phase::kLeaving) view.holder = id;
    }
    std::sort(waiting.begin(), waiting.end(), [this](const LeaseState* a, const LeaseState* b) {
      return order_.goes_before(*a, *b);
    });
    for (const LeaseState* lease : waiting) view.waiting.push_back(lease->terms.id);
    views.push_back(std::move(view));
  }
  return views;
}

}  // namespace gpurota::sched
