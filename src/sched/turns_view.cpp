#include "sched/turns_view.h"

#include "sched/seconds.h"
#include "sched/turns.h"

#include <algorithm>
#include <cmath>

namespace gpurota::sched {

const char* to_string(Wait wait) {
  switch (wait) {
    case Wait::kNothing:
      return "nothing";
    case Wait::kTurn:
      return "its turn";
    case Wait::kMoving:
      return "its memory";
    case Wait::kDraining:
      return "the last holder's work";
    case Wait::kStopped:
      return "a process of its own that is stopped";
    case Wait::kHeldByStopped:
      return "memory of a stopped process";
    case Wait::kNoRoom:
      return "room: what cannot be moved leaves too little for it";
    case Wait::kNoHost:
      return "host memory: too little is left to move others out";
    case Wait::kRetry:
      return "a retry";
    case Wait::kRestart:
      return "the daemon's restart";
    case Wait::kLost:
      return "its GPU, which is lost";
    case Wait::kAside:
      return "its GPU not to be needed";
  }
  return "?";
}

const char* to_string(Phase phase) {
  switch (phase) {
    case Phase::kApart:
      return "waiting";
    case Phase::kEntering:
      return "entering";
    case Phase::kHolding:
      return "holding";
    case Phase::kLeaving:
      return "leaving";
  }
  return "?";
}

namespace {

void earlier(std::optional<TimePoint>& best, TimePoint when, TimePoint now) {
  if (when > now && when != TimePoint::max() && (!best || when < *best)) best = when;
}

}  // namespace

std::optional<TimePoint> Turns::next_deadline() const {
  if (now_ < held_until_) return held_until_;
  std::optional<TimePoint> best;
  for (const GpuState& gpu : gpus_) {
    if (gpu.fits_since) earlier(best, *gpu.fits_since + settings_.calm, now_);
    if (gpu.contended) earlier(best, gpu.budget.turns_at(gpu.draining), now_);
  }
  for (const auto& [id, tenant] : tenants_) earlier(best, tenant.retry_at, now_);
  for (const auto& [id, lease] : leases_) {
    earlier(best, lease.retry_at, now_);
    if (lease.no_room_since && !lease.no_room_reported) {
      earlier(best, *lease.no_room_since + kNoRoomLasts, now_);
    }
    if (const auto until = held_up_until(lease)) earlier(best, *until, now_);
    if (lease.phase == Phase::kLeaving) {
      earlier(best, lease.letting.since + lease.letting.patience, now_);
      earlier(best, lease.closed_at + settings_.drain_patience, now_);
      if (!lease.reported) earlier(best, lease.closed_at + settings_.yield_deadline, now_);
    }
    if (lease.phase != Phase::kHolding) continue;
    for (const auto& [other_id, other] : leases_) {
      if (!waits_for(other, lease)) continue;
      earlier(best, lease.turn_since + quantum(lease), now_);
      if (!lease.idle_since) continue;
      earlier(best, *lease.idle_since + idle_before_release(lease, other), now_);
    }
  }
  return best;
}

Wait Turns::wait_of(const LeaseState& lease) const {
  if (now_ < held_until_) return Wait::kRestart;
  if (lease.phase == Phase::kEntering) {
    for (const auto& [id, other] : leases_) {
      if (other.phase == Phase::kLeaving && conflict(lease, other)) return Wait::kDraining;
    }
    return Wait::kMoving;
  }
  if (lease.aside && lease.phase == Phase::kApart) return Wait::kAside;
  if (lease.phase == Phase::kHolding || !wants(lease)) return Wait::kNothing;
  const Wait found = hindrance(lease);
  return found == Wait::kNothing ? Wait::kTurn : found;
}

std::optional<LeaseView> Turns::explain(LeaseId id, TimePoint now) const {
  const auto found = leases_.find(id);
  if (found == leases_.end()) return std::nullopt;
  const LeaseState& lease = found->second;
  LeaseView view;
  view.lease = id;
  view.phase = lease.phase;
  view.takes_turns = !turn_gpus(lease).empty();
  view.above_soft = lease.above_soft;
  view.wait = wait_of(lease);
  view.quantum = quantum(lease);
  for (GpuSlot gpu : lease.gpus) {
    const Holding h = memory_.of_lease(id, gpu);
    view.gpus.push_back({memory_.uuid(gpu), h.resident, h.out(), h.wired});
  }
  for (TenantId tenant : lease.tenants) {
    if (!tenants_.at(tenant).reachable) view.process = tenant;
  }
  if (view.wait == Wait::kHeldByStopped) {
    view.process = has_most_of(lease);
    if (const auto it = tenants_.find(view.process); it != tenants_.end())
      view.behind = it->second.lease;
    view.earliest = held_up_until(lease);
  }
  if (view.wait != Wait::kTurn && view.wait != Wait::kDraining) return view;
  for (const auto& [other_id, other] : leases_) {
    if (other_id == id || !conflict(lease, other)) continue;
    const bool waits = other.phase == Phase::kApart && wants(other) && eligible(other);
    if (waits && goes_before(other, lease)) ++view.position;
    if (other.phase == Phase::kApart || other.phase == Phase::kEntering) continue;
    view.behind = other_id;
    if (other.phase != Phase::kHolding) continue;
    view.earliest = std::max(view.earliest.value_or(now), end_of_turn(other, lease));
  }
  if (view.earliest == TimePoint::max()) view.earliest.reset();
  ++view.position;
  return view;
}

// A holder that has had less takes quantum after quantum until it has had as much, and one of a higher priority as long as
// the budget for that lasts, if they have work for so long.
TimePoint Turns::end_of_turn(const LeaseState& holder, const LeaseState& waiting) const {
  const Duration turn = quantum(holder);
  const double had = holder.clock.read(now_, holder.terms.weight);
  const double ahead = waiting.clock.read(now_, waiting.terms.weight) - had;
  const double until_equal = seconds(now_ - holder.turn_since) + ahead * holder.terms.weight;
  const double quanta = std::max(1.0, std::ceil(until_equal / seconds(turn)));
  TimePoint end = holder.turn_since + from_seconds(seconds(turn) * quanta);
  if (effective_priority(holder) <= effective_priority(waiting)) return end;
  for (GpuSlot gpu : turn_gpus(holder)) {
    end = std::max(end, gpus_[gpu.value].budget.turns_at(true));
  }
  return end;
}

std::vector<GpuView> Turns::view(TimePoint) const {
  std::vector<GpuView> views;
  for (std::uint32_t i = 0; i < gpus_.size(); ++i) {
    const GpuSlot slot{i};
    if (memory_.is_lost(slot)) continue;
    GpuView view;
    view.settings = gpus_[i].settings;
    view.takes_turns = gpus_[i].contended;
    view.used = memory_.used(slot);
    view.deficit = memory_.deficit(slot);
    view.switches = gpus_[i].switches;
    view.counts = gpus_[i].counts;
    view.since_switch = gpus_[i].since_switch;
    std::vector<const LeaseState*> waiting;
    for (const auto& [id, lease] : leases_) {
      const Slots gpus = turn_gpus(lease);
      if (std::find(gpus.begin(), gpus.end(), slot) == gpus.end()) continue;
      if (lease.phase == Phase::kApart && wants(lease)) waiting.push_back(&lease);
      if (lease.phase != Phase::kApart && lease.phase != Phase::kLeaving) view.holder = id;
    }
    std::sort(waiting.begin(), waiting.end(),
              [this](const LeaseState* a, const LeaseState* b) { return goes_before(*a, *b); });
    for (const LeaseState* lease : waiting) view.waiting.push_back(lease->terms.id);
    views.push_back(std::move(view));
  }
  return views;
}

}  // namespace gpurota::sched
