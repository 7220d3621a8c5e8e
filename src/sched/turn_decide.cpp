#include "sched/turn_decide.h"

#include "sched/seconds.h"
#include "sched/turn_act.h"

#include <algorithm>

namespace gpurota::sched {

// The order of leases.

namespace {

bool claims_more(const TurnTable& table, const LeaseState& a, const LeaseState& b, GpuSlot gpu) {
  if (table.waits_for_room(a, gpu) != table.waits_for_room(b, gpu))
    return table.waits_for_room(a, gpu);
  if (table.wants(a) != table.wants(b)) return table.wants(a);
  return goes_before(table, a, b);
}

}  // namespace

bool is_above_soft(const TurnTable& table, const LeaseState& lease) {
  return std::any_of(lease.terms.gpus.begin(), lease.terms.gpus.end(),
                     [&](const LeaseTerms::Gpu& gpu) {
                       const auto slot = table.memory.slot_of(gpu.uuid);
                       if (!gpu.soft_limit || !slot) return false;
                       const Holding h = table.memory.of_lease(lease.terms.id, *slot);
                       return h.movable + h.wired + h.wired_unbacked + h.beside > *gpu.soft_limit;
                     });
}

int rank(const LeaseState& lease) {
  constexpr int kBehindAll = 1 << 20;  // more than the difference of any two priorities
  return lease.terms.priority - (lease.above_soft ? kBehindAll : 0);
}

int effective_priority(const TurnTable& table, const LeaseState& lease) {
  const Slots gpus = table.turn_gpus(lease);
  const bool spent =
      std::any_of(gpus.begin(), gpus.end(), [&](GpuSlot g) { return table.gpus[g.value].spent; });
  if (!spent) return rank(lease);
  int lowest = rank(lease);
  for (const auto& [id, other] : table.leases) lowest = std::min(lowest, rank(other));
  return lowest;
}

bool goes_before(const TurnTable& table, const LeaseState& a, const LeaseState& b) {
  const int first = effective_priority(table, a);
  const int second = effective_priority(table, b);
  if (first != second) return first > second;
  const double had = a.clock.read(table.now, a.terms.weight);
  const double other_had = b.clock.read(table.now, b.terms.weight);
  if (had != other_had) return had < other_had;
  // A lease that has the turn gives it to a waiting lease that has had as much time.
  const TimePoint last = a.clock.running() ? table.now : a.held_last;
  const TimePoint other_last = b.clock.running() ? table.now : b.held_last;
  if (last != other_last) return last < other_last;
  return a.terms.id < b.terms.id;
}

// The length of a turn.

namespace {

Duration part_of(Duration whole, double part) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(whole) * part);
}

// Uses the speed of the lease's own switches if one was measured: leases differ in how much of
// their memory is pinned, and in how much of it changes.
Duration move_estimate(const TurnTable& table, const LeaseState& lease) {
  Duration most{};
  for (GpuSlot gpu : table.turn_gpus(lease)) {
    const Bytes one_way =
        std::min(table.memory.of_lease(lease.terms.id, gpu).movable, table.memory.deficit(gpu));
    const MoveCost& speed = lease.speed ? *lease.speed : table.gpus[gpu.value].cost;
    most = std::max(most, speed.estimate(one_way + one_way));
  }
  return most;
}

// Nothing: the quantum follows from the cost of turns. A lease that takes no turns is judged as if
// it took them on all its GPUs.
std::optional<Duration> quantum_as_set(const TurnTable& table, const LeaseState& lease) {
  const bool from_cost = lease.terms.quantum == Duration::zero();
  if (from_cost) return std::nullopt;
  if (lease.terms.quantum) return lease.terms.quantum;
  const Slots contended = table.turn_gpus(lease);
  std::optional<Duration> of_gpu;
  for (GpuSlot gpu : contended.empty() ? lease.gpus : contended) {
    const auto& set = table.gpus[gpu.value].settings.quantum;
    if (set) of_gpu = of_gpu ? std::min(*of_gpu, *set) : *set;
  }
  return of_gpu ? of_gpu : table.settings.quantum;
}

// The measured cost of the lease's turns may be less than the estimate, because memory that has not
// changed is not copied. The lesser of the two counts.
Duration turn_cost(const TurnTable& table, const LeaseState& lease) {
  const Duration estimate = move_estimate(table, lease);
  if (!lease.cost.known()) return estimate;
  const std::chrono::duration<double> measured(lease.cost.value());
  return std::min(estimate, std::chrono::duration_cast<Duration>(measured));
}

bool is_idle_enough(const TurnTable& table, const LeaseState& holder, const LeaseState& to) {
  if (holder.phase != Phase::kHolding || !holder.idle_since) return false;
  return table.now >= *holder.idle_since + idle_before_release(table, holder, to);
}

}  // namespace

Duration quantum(const TurnTable& table, const LeaseState& lease) {
  const auto set = quantum_as_set(table, lease);
  return set ? *set : quantum_for(turn_cost(table, lease), table.settings);
}

// A holder of higher priority takes the turn back at once, so giving the turn away costs moving
// there and back. Any other holder gets the turn back only when it is due, and loses the rest of
// the current turn. The price is the part of the cost of the switch that falls to this rest, if
// that cost is spread evenly over the turn and the switch.
Duration idle_before_release(const TurnTable& table, const LeaseState& holder,
                             const LeaseState& to) {
  const Duration cost = turn_cost(table, holder);
  Duration price = 2 * cost;
  if (effective_priority(table, holder) <= effective_priority(table, to)) {
    const Duration turn = quantum_as_set(table, holder).value_or(quantum_for(cost, table.settings));
    const Duration rest = holder.turn_since + turn - *holder.idle_since;
    price = part_of(cost, seconds(std::clamp(rest, Duration{}, turn)) / seconds(turn + cost));
  }
  return holder.pauses.before_release(price, table.settings);
}

// Obstacles between a lease and its turn.

namespace {

// Whether memory of other leases has to be evicted for the lease, but host memory has no room, and
// no move under way makes room. The other leases may have grown without asking since the lease was
// admitted.
bool is_host_full(const TurnTable& table, const Holding& own, GpuSlot gpu) {
  const Bytes missing = own.missing();
  const Bytes needed = missing + own.unbacked + own.wired_unbacked;
  const Bytes free = free_on(table.memory, gpu);
  if (needed <= free) return false;
  if (!missing.is_zero() && free >= std::min(missing, table.settings.piece)) return false;
  for (const auto& [id, tenant] : table.tenants) {
    const Holding& h = table.memory.at(id, gpu);
    if (!(h.coming + on_its_way_out(tenant, h)).is_zero()) return false;
  }
  return table.may_go_out() < std::min(needed - free, table.settings.piece);
}

// A lease that has all its memory on the GPU needs no room, whatever has come beside it.
Wait hindrance_on(const TurnTable& table, const LeaseState& lease, GpuSlot gpu) {
  const Holding own = table.memory.of_lease(lease.terms.id, gpu);
  if ((own.out() + own.unbacked + own.wired_unbacked).is_zero()) return Wait::kNothing;
  if (table.memory.is_lost(gpu)) return Wait::kLost;
  Bytes fixed = table.memory.wired(gpu);
  Bytes stays;
  bool stopped = false;
  for (const auto& [id, tenant] : table.tenants) {
    const Holding& h = table.memory.at(id, gpu);
    if (tenant.dead) fixed += h.lingering;  // a living tenant's memory is confirmed as free soon
    const Bytes here = h.resident + h.coming;
    if (tenant.lease == lease.terms.id || table.can_give(tenant) || here.is_zero()) continue;
    stays += here;
    stopped = stopped || !tenant.can_answer();
  }
  const Bytes capacity = table.memory.capacity(gpu);
  if (own.movable + fixed > capacity) return Wait::kNoRoom;
  if (own.movable + fixed + stays > capacity) {
    return stopped ? Wait::kHeldByStopped : Wait::kRetry;
  }
  return is_host_full(table, own, gpu) ? Wait::kNoHost : Wait::kNothing;
}

}  // namespace

// A lease that already has the turn, but waits for `holder` to leave, counts, too.
bool waits_for(const TurnTable& table, const LeaseState& other, const LeaseState& holder) {
  if (other.terms.id == holder.terms.id || !table.conflict(other, holder)) return false;
  if (other.phase == Phase::kEntering || other.phase == Phase::kHolding) return true;
  if (other.phase == Phase::kLeaving) {
    return std::any_of(other.gpus.begin(), other.gpus.end(),
                       [&](GpuSlot gpu) { return table.waits_for_room(other, gpu); });
  }
  return other.phase == Phase::kApart && table.wants(other) && eligible(table, other);
}

bool somebody_waits_for(const TurnTable& table, const LeaseState& holder) {
  return std::any_of(table.leases.begin(), table.leases.end(),
                     [&](const auto& entry) { return waits_for(table, entry.second, holder); });
}

bool eligible(const TurnTable& table, const LeaseState& lease) {
  return hindrance(table, lease) == Wait::kNothing;
}

// The obstacle that keeps the lease from running: all its processes must be able to answer, and
// there must be room for the memory that it lacks.
Wait hindrance(const TurnTable& table, const LeaseState& lease) {
  if (lease.aside) return Wait::kAside;
  if (lease.retry_at > table.now) return Wait::kRetry;
  for (TenantId id : lease.tenants) {
    const TenantState& tenant = table.tenants.at(id);
    if (!tenant.reachable && !tenant.dead) return Wait::kStopped;
  }
  for (GpuSlot gpu : lease.gpus) {
    if (!table.takes_turns(lease, gpu) && !table.memory.is_lost(gpu)) continue;
    const Wait found = hindrance_on(table, lease, gpu);
    if (found != Wait::kNothing) return found;
  }
  return Wait::kNothing;
}

bool waits_for_memory(const TurnTable& table, const LeaseState& lease) {
  if (lease.phase == Phase::kApart) return table.wants(lease);
  return std::any_of(lease.gpus.begin(), lease.gpus.end(),
                     [&](GpuSlot gpu) { return table.waits_for_room(lease, gpu); });
}

std::optional<TimePoint> held_up_until(const TurnTable& table, const LeaseState& lease) {
  const Duration bound = table.settings.stopped_deadline;
  if (!lease.is_held_up || bound == Duration::zero()) return std::nullopt;
  return table.now + std::max(bound - lease.held_up, Duration::zero());
}

TenantId has_most_of(const TurnTable& table, const LeaseState& lease) {
  TenantId most{};
  Bytes largest;
  for (const auto& [id, tenant] : table.tenants) {
    if (tenant.lease == lease.terms.id || tenant.reachable || tenant.dead) continue;
    for (GpuSlot gpu : lease.gpus) {
      const Holding& h = table.memory.at(id, gpu);
      if (h.resident + h.coming <= largest) continue;
      largest = h.resident + h.coming;
      most = id;
    }
  }
  return most;
}

// The decision.

namespace {

// A GPU that is kept for the lease that comes next.
struct Reservation {
  LeaseId lease;
  TimePoint until;  // when its holders will have had their quantum
};

std::vector<LeaseState*> waiting_in_order(TurnTable& table) {
  std::vector<LeaseState*> waiting;
  for (auto& [id, lease] : table.leases) {
    if (lease.phase != Phase::kApart || lease.tenants.empty() || !eligible(table, lease)) continue;
    if (table.wants(lease) || table.turn_gpus(lease).empty()) waiting.push_back(&lease);
  }
  std::sort(waiting.begin(), waiting.end(),
            [&](const LeaseState* a, const LeaseState* b) { return goes_before(table, *a, *b); });
  return waiting;
}

bool yields(const TurnTable& table, const LeaseState& holder, const LeaseState& to) {
  if (holder.phase == Phase::kLeaving) return true;
  if (effective_priority(table, to) > effective_priority(table, holder)) return true;
  if (holder.phase == Phase::kEntering) return false;
  if (is_idle_enough(table, holder, to)) return true;
  const bool nobody_answers = std::none_of(
      holder.tenants.begin(), holder.tenants.end(),
      [&](TenantId id) { return table.tenants.at(id).reachable && !table.tenants.at(id).dead; });
  if (nobody_answers) return true;
  if (!goes_before(table, to, holder)) return false;
  // A holder that has had more than its share is not protected by its quantum.
  const bool overdrawn =
      effective_priority(table, holder) < rank(holder) && rank(holder) > rank(to);
  return holder.backfill || overdrawn || table.now >= holder.turn_since + quantum(table, holder);
}

// GPUs that are kept for a lease may be used while that lease has to wait for others anyway, if
// there is time enough for some work.
bool may_backfill(const TurnTable& table, const LeaseState& lease,
                  const std::map<GpuSlot, Reservation>& reserved) {
  const Duration worth = 4 * move_estimate(table, lease) + table.settings.least_quantum;
  for (GpuSlot gpu : table.turn_gpus(lease)) {
    const auto kept = reserved.find(gpu);
    if (kept != reserved.end() && kept->second.until < table.now + worth) return false;
  }
  return true;
}

void choose_for(TurnTable& table, LeaseState& lease, std::map<GpuSlot, Reservation>& reserved) {
  const Slots gpus = table.turn_gpus(lease);
  const std::vector<LeaseState*> holders = table.claimants(gpus, lease.terms.id);
  const bool kept =
      std::any_of(gpus.begin(), gpus.end(), [&](GpuSlot gpu) { return reserved.contains(gpu); });
  if (kept) {
    if (holders.empty() && may_backfill(table, lease, reserved)) begin_entering(table, lease, true);
    return;
  }
  std::optional<TimePoint> until;
  for (const LeaseState* holder : holders) {
    if (yields(table, *holder, lease)) continue;
    const TimePoint from = holder->phase == Phase::kEntering ? table.now : holder->turn_since;
    until = std::max(until.value_or(table.now), from + quantum(table, *holder));
  }
  if (until) {
    for (GpuSlot gpu : gpus) reserved[gpu] = {lease.terms.id, *until};
    return;
  }
  for (LeaseState* holder : holders) {
    if (holder->phase == Phase::kHolding) close_gates(table, *holder);
    if (holder->phase == Phase::kEntering) abandon_entering(table, *holder);
  }
  begin_entering(table, lease, false);
}

}  // namespace

void choose_next(TurnTable& table) {
  for (auto& [id, lease] : table.leases) {
    if (lease.phase == Phase::kEntering && !eligible(table, lease)) abandon_entering(table, lease);
  }
  std::map<GpuSlot, Reservation> reserved;
  for (LeaseState* lease : waiting_in_order(table)) {
    if (lease->phase == Phase::kApart) choose_for(table, *lease, reserved);
  }
}

// Several leases may hold one GPU in two cases: the leases held the GPU before turns began on it,
// or a lease that holds other GPUs begins to use this GPU, too.
//
// If a lease in kLeaving waits for memory, the holders that wait for no memory leave, too, to make
// room: the kernels of the leaving lease may be unable to end before a thread of its program has
// that memory.
// If the leaving lease still waits after Settings::drain_patience, even the holders that wait for
// memory leave: the first lease that drains makes room for the others. Of the holders that remain,
// one stays, preferably one that waits for memory.
void resolve_conflicts(TurnTable& table) {
  for (std::uint32_t i = 0; i < table.gpus.size(); ++i) {
    if (!table.gpus[i].contended) continue;
    const GpuSlot gpu{i};
    LeaseState* best = nullptr;
    std::vector<LeaseState*> holders = table.claimants({gpu}, {});
    const bool leaver_waits = std::any_of(holders.begin(), holders.end(), [&](LeaseState* l) {
      return l->phase == Phase::kLeaving && table.waits_for_room(*l, gpu);
    });
    const bool leaver_is_stuck = std::any_of(
        holders.begin(), holders.end(), [&](LeaseState* l) { return table.cannot_leave(*l, gpu); });
    std::erase_if(holders, [](const LeaseState* l) { return l->phase == Phase::kLeaving; });
    for (LeaseState* lease : holders) {
      const bool gives_way = lease->phase == Phase::kHolding &&
                             (leaver_is_stuck || !table.waits_for_room(*lease, gpu));
      if (leaver_waits && gives_way) close_gates(table, *lease);
    }
    std::erase_if(holders, [](const LeaseState* l) { return l->phase == Phase::kLeaving; });
    for (LeaseState* lease : holders) {
      if (best == nullptr || claims_more(table, *lease, *best, gpu)) best = lease;
    }
    for (LeaseState* lease : holders) {
      if (lease == best) continue;
      if (lease->phase == Phase::kHolding) close_gates(table, *lease);
      if (lease->phase == Phase::kEntering) abandon_entering(table, *lease);
    }
  }
}

// A holder that is still first in order begins a new quantum; nothing moves for that. Where nobody
// waits, no quantum begins anew, so that a lease that comes later need not wait for a new quantum
// to end.
void renew_quanta(TurnTable& table) {
  const std::vector<LeaseState*> waiting = waiting_in_order(table);
  for (auto& [id, lease] : table.leases) {
    if (lease.phase != Phase::kHolding || table.now < lease.turn_since + quantum(table, lease))
      continue;
    const LeaseState* first = nullptr;
    for (const LeaseState* other : waiting) {
      if (first == nullptr && table.conflict(lease, *other)) first = other;
    }
    if (first != nullptr && !goes_before(table, *first, lease)) lease.turn_since = table.now;
  }
}

}  // namespace gpurota::sched
