// Who is next, and who has to make way.
#include "sched/seconds.h"
#include "sched/turns.h"

#include <algorithm>

namespace gpurota::sched {
namespace {

bool contains(const std::vector<GpuSlot>& gpus, GpuSlot gpu) {
  return std::find(gpus.begin(), gpus.end(), gpu) != gpus.end();
}

Duration part_of(Duration whole, double part) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(whole) * part);
}

}  // namespace

// Turns begin at once and end only when all has fitted for a while: a program that allocates and frees
// at the border would else close and open everybody's gates each time.
void Turns::look_at_contention() {
  for (std::uint32_t i = 0; i < gpus_.size(); ++i) {
    GpuState& gpu = gpus_[i];
    const GpuSlot slot{i};
    const bool forced = gpu.settings.mode == TurnsMode::kOn && memory_.shared(slot);
    if (forced || !memory_.deficit(slot).is_zero()) {
      gpu.fits_since.reset();
      if (!gpu.contended) begin_contention(slot);
    } else if (gpu.contended) {
      if (!gpu.fits_since) gpu.fits_since = now_;
      if (now_ < *gpu.fits_since + settings_.calm) continue;
      gpu.contended = false;
      gpu.last_holder = {};
      changed_ = true;
    }
  }
  keep_clocks();
}

// Whoever has run there starts from the same line. Not who stands in it for another of its GPUs: turns that begin and end
// here again and again would put it back each time.
void Turns::begin_contention(GpuSlot gpu) {
  gpus_[gpu.value].contended = true;
  changed_ = true;
  double most = 0;
  for (const auto& [id, lease] : leases_) {
    if (contains(lease.gpus, gpu))
      most = std::max(most, lease.clock.read(now_, lease.terms.weight));
  }
  for (auto& [id, lease] : leases_) {
    const bool ran = lease.phase != Phase::kApart && !lease.clock.running();
    if (ran && contains(lease.gpus, gpu)) lease.clock.catch_up(most);
  }
}

// The clock runs while a turn is held, until its work has drained.
void Turns::keep_clocks() {
  for (auto& [id, lease] : leases_) {
    const bool has_turn = lease.phase == Phase::kHolding && !turn_gpus(lease).empty();
    if (has_turn && !lease.clock.running()) lease.clock.start(now_);
    if (!has_turn && lease.phase != Phase::kLeaving) stop_clock(lease);
  }
}

// What the least served of those that wait, or have the turn, has had. Who has it may want nothing at the moment of a look.
std::optional<double> Turns::least_served(const LeaseState& besides) const {
  std::optional<double> least;
  for (const auto& [id, other] : leases_) {
    const bool counts =
        other.wanted || other.phase == Phase::kEntering || other.phase == Phase::kHolding;
    if (id == besides.terms.id || !counts || !conflict(besides, other)) continue;
    const double value = other.clock.read(now_, other.terms.weight);
    least = least ? std::min(*least, value) : value;
  }
  return least;
}

// Who comes, or comes back, brings no credit, and no debt beyond a window: what it had while nobody else
// could use it.
void Turns::join_line(LeaseState& lease) {
  constexpr double kWindow = 4;
  const std::optional<double> least = least_served(lease);
  if (!least) return;
  lease.clock.catch_up(*least);
  lease.clock.hold_back(*least + kWindow * seconds(quantum(lease)));
}

// A tenant counts as busy until it has answered an order, which says nothing of it: a pause goes on meanwhile.
void Turns::keep_pauses(LeaseState& lease) {
  bool working = false;
  bool unknown = false;
  for (TenantId id : lease.tenants) {
    const TenantState& tenant = tenants_.at(id);
    working = working || tenant.asks() || (tenant.busy && tenant.answered());
    unknown = unknown || !tenant.answered();
  }
  if (working && lease.idle_since) {
    lease.pauses.add(now_ - *lease.idle_since);
    lease.idle_since.reset();
  }
  if (!working && !unknown && !lease.idle_since) lease.idle_since = now_;
}

void Turns::look_at_wishes() {
  for (auto& [id, lease] : leases_) {
    keep_pauses(lease);
    const bool wishes = wants(lease);
    const bool takes_turns = !turn_gpus(lease).empty();
    const bool comes_back = wishes && !lease.wanted && lease.phase == Phase::kApart;
    if (comes_back || (takes_turns && !lease.takes_turns)) join_line(lease);
    lease.takes_turns = takes_turns;
    lease.above_soft = is_above_soft(lease);
    lease.wanted = wishes;
    if (!wishes || lease.phase != Phase::kApart) {
      lease.waits_since.reset();
    } else if (!lease.waits_since) {
      lease.waits_since = now_;
    }
  }
}

// Drained while a holder keeps somebody of lower priority waiting, and until that one has its turn back: one that
// comes and goes faster than memory moves would else hold the others back for ever.
void Turns::look_at_budgets() {
  for (std::uint32_t i = 0; i < gpus_.size(); ++i) {
    const GpuSlot gpu{i};
    const std::vector<LeaseState*> holders = claimants({gpu}, {});
    const auto last = leases_.find(gpus_[i].last_holder);
    gpus_[i].draining = std::any_of(leases_.begin(), leases_.end(), [&](const auto& entry) {
      const LeaseState& lease = entry.second;
      const auto is_above = [&](const LeaseState* other) { return rank(lease) < rank(*other); };
      if (!lease.wanted || !contains(turn_gpus(lease), gpu)) return false;
      if (lease.phase == Phase::kEntering) return last != leases_.end() && is_above(&last->second);
      return lease.phase == Phase::kApart && std::any_of(holders.begin(), holders.end(), is_above);
    });
  }
}

// A lease of several GPUs needs all of them at once: while the budget of one is spent, priorities count for nothing on
// the others either, or it would wait for the moment in which all happen to be.
void Turns::look_at_spent_budgets() {
  for (GpuState& gpu : gpus_) gpu.spent = gpu.budget.spent();
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& [id, lease] : leases_) {
      const Slots gpus = turn_gpus(lease);
      const auto is_spent = [&](GpuSlot g) { return gpus_[g.value].spent; };
      const bool any = std::any_of(gpus.begin(), gpus.end(), is_spent);
      if (!any || std::all_of(gpus.begin(), gpus.end(), is_spent)) continue;
      for (GpuSlot g : gpus) gpus_[g.value].spent = true;
      changed = true;
    }
  }
}

bool Turns::wants(const LeaseState& lease) const {
  if (lease.aside) return false;
  return std::any_of(lease.tenants.begin(), lease.tenants.end(), [&](TenantId id) {
    const TenantState& t = tenants_.at(id);
    return t.reachable && !t.dead &&
           (t.waiting > 0 || !t.growth.empty() || (t.busy && lease.phase != Phase::kApart));
  });
}

bool Turns::takes_turns(const LeaseState& lease, GpuSlot gpu) const {
  if (!gpus_[gpu.value].contended) return false;
  const Holding h = memory_.of_lease(lease.terms.id, gpu);
  return !(h.movable + h.wired + h.wired_unbacked).is_zero();
}

Turns::Slots Turns::turn_gpus(const LeaseState& lease) const {
  Slots gpus;
  for (GpuSlot gpu : lease.gpus) {
    if (takes_turns(lease, gpu)) gpus.push_back(gpu);
  }
  return gpus;
}

bool Turns::conflict(const LeaseState& a, const LeaseState& b) const {
  const Slots gpus = turn_gpus(a);
  const Slots others = turn_gpus(b);
  return std::any_of(gpus.begin(), gpus.end(), [&](GpuSlot g) { return contains(others, g); });
}

std::vector<LeaseState*> Turns::claimants(const Slots& gpus, LeaseId except) {
  std::vector<LeaseState*> found;
  for (auto& [id, lease] : leases_) {
    if (id == except || lease.phase == Phase::kApart) continue;
    const Slots claimed = turn_gpus(lease);
    if (std::any_of(gpus.begin(), gpus.end(), [&](GpuSlot g) { return contains(claimed, g); })) {
      found.push_back(&lease);
    }
  }
  return found;
}

bool Turns::is_above_soft(const LeaseState& lease) const {
  return std::any_of(lease.terms.gpus.begin(), lease.terms.gpus.end(),
                     [&](const LeaseTerms::Gpu& gpu) {
                       const auto slot = memory_.slot_of(gpu.uuid);
                       if (!gpu.soft_limit || !slot) return false;
                       const Holding h = memory_.of_lease(lease.terms.id, *slot);
                       return h.movable + h.wired + h.wired_unbacked + h.beside > *gpu.soft_limit;
                     });
}

// A lease above its soft limit stands behind all that are not, and there by its priority.
int Turns::rank(const LeaseState& lease) {
  constexpr int kBehindAll = 1 << 20;  // further than any two priorities are apart
  return lease.terms.priority - (lease.above_soft ? kBehindAll : 0);
}

// While the budget of one of its GPUs is spent, a priority is the lowest that anybody has.
int Turns::effective_priority(const LeaseState& lease) const {
  const Slots gpus = turn_gpus(lease);
  const bool spent =
      std::any_of(gpus.begin(), gpus.end(), [&](GpuSlot g) { return gpus_[g.value].spent; });
  if (!spent) return rank(lease);
  int lowest = rank(lease);
  for (const auto& [id, other] : leases_) lowest = std::min(lowest, rank(other));
  return lowest;
}

bool Turns::goes_before(const LeaseState& a, const LeaseState& b) const {
  const int first = effective_priority(a);
  const int second = effective_priority(b);
  if (first != second) return first > second;
  const double had = a.clock.read(now_, a.terms.weight);
  const double other_had = b.clock.read(now_, b.terms.weight);
  if (had != other_had) return had < other_had;
  // Who has its turn gives it to who has had as much, and wants it.
  const TimePoint last = a.clock.running() ? now_ : a.held_last;
  const TimePoint other_last = b.clock.running() ? now_ : b.held_last;
  if (last != other_last) return last < other_last;
  return a.terms.id < b.terms.id;
}

std::vector<LeaseState*> Turns::waiting_in_order() {
  std::vector<LeaseState*> waiting;
  for (auto& [id, lease] : leases_) {
    if (lease.phase != Phase::kApart || lease.tenants.empty() || !eligible(lease)) continue;
    if (wants(lease) || turn_gpus(lease).empty()) waiting.push_back(&lease);
  }
  std::sort(waiting.begin(), waiting.end(),
            [this](const LeaseState* a, const LeaseState* b) { return goes_before(*a, *b); });
  return waiting;
}

// Who holds what this one has not left yet counts too.
bool Turns::waits_for(const LeaseState& other, const LeaseState& holder) const {
  if (other.terms.id == holder.terms.id || !conflict(other, holder)) return false;
  if (other.phase == Phase::kEntering || other.phase == Phase::kHolding) return true;
  if (other.phase == Phase::kLeaving) {
    return std::any_of(other.gpus.begin(), other.gpus.end(),
                       [&](GpuSlot gpu) { return waits_for_room(other, gpu); });
  }
  return other.phase == Phase::kApart && wants(other) && eligible(other);
}

bool Turns::somebody_waits_for(const LeaseState& holder) const {
  return std::any_of(leases_.begin(), leases_.end(),
                     [&](const auto& entry) { return waits_for(entry.second, holder); });
}

Duration Turns::move_estimate(const LeaseState& lease) const {
  Duration most{};
  for (GpuSlot gpu : turn_gpus(lease)) {
    const Bytes one_way =
        std::min(memory_.of_lease(lease.terms.id, gpu).movable, memory_.deficit(gpu));
    most = std::max(most, gpus_[gpu.value].cost.estimate(one_way + one_way));
  }
  return most;
}

// Empty: from the cost of its turns. While it takes none, as if it did on all its GPUs.
std::optional<Duration> Turns::quantum_as_set(const LeaseState& lease) const {
  const bool from_cost = lease.terms.quantum == Duration::zero();
  if (from_cost) return std::nullopt;
  if (lease.terms.quantum) return lease.terms.quantum;
  const Slots contended = turn_gpus(lease);
  std::optional<Duration> of_gpu;
  for (GpuSlot gpu : contended.empty() ? lease.gpus : contended) {
    const auto& set = gpus_[gpu.value].settings.quantum;
    if (set) of_gpu = of_gpu ? std::min(*of_gpu, *set) : *set;
  }
  return of_gpu ? of_gpu : settings_.quantum;
}

Duration Turns::quantum(const LeaseState& lease) const {
  const auto set = quantum_as_set(lease);
  return set ? *set : quantum_for(turn_cost(lease), settings_);
}

// What its turns cost counts if that is less: much of its memory does not change, and is not copied.
Duration Turns::turn_cost(const LeaseState& lease) const {
  const Duration estimate = move_estimate(lease);
  if (!lease.cost.known()) return estimate;
  const std::chrono::duration<double> measured(lease.cost.value());
  return std::min(estimate, std::chrono::duration_cast<Duration>(measured));
}

bool Turns::is_idle_enough(const LeaseState& holder, const LeaseState& to) const {
  if (holder.phase != Phase::kHolding || !holder.idle_since) return false;
  return now_ >= *holder.idle_since + idle_before_release(holder, to);
}

// Who outranks the other takes the turn back at once: moving there and back. Among equals it comes back when it is due; what
// giving it away early costs is the part of a switch that the rest of the turn would have paid for.
Duration Turns::idle_before_release(const LeaseState& holder, const LeaseState& to) const {
  const Duration cost = turn_cost(holder);
  Duration price = 2 * cost;
  if (effective_priority(holder) <= effective_priority(to)) {
    const Duration turn = quantum_as_set(holder).value_or(quantum_for(cost, settings_));
    const Duration rest = holder.turn_since + turn - *holder.idle_since;
    price = part_of(cost, seconds(std::clamp(rest, Duration{}, turn)) / seconds(turn + cost));
  }
  return holder.pauses.before_release(price, settings_);
}

bool Turns::yields(const LeaseState& holder, const LeaseState& to) const {
  if (holder.phase == Phase::kLeaving) return true;
  if (effective_priority(to) > effective_priority(holder)) return true;
  if (holder.phase == Phase::kEntering) return false;
  if (is_idle_enough(holder, to)) return true;
  const bool nobody_answers =
      std::none_of(holder.tenants.begin(), holder.tenants.end(),
                   [&](TenantId id) { return tenants_.at(id).reachable && !tenants_.at(id).dead; });
  if (nobody_answers) return true;
  if (!goes_before(to, holder)) return false;
  // It had more than its share already: its quantum does not protect it.
  const bool overdrawn = effective_priority(holder) < rank(holder) && rank(holder) > rank(to);
  return holder.backfill || overdrawn || now_ >= holder.turn_since + quantum(holder);
}

// GPUs that are kept for a lease may be used as long as that has to wait for others anyway, if there is
// time to do something.
bool Turns::may_backfill(const LeaseState& lease,
                         const std::map<GpuSlot, Reservation>& reserved) const {
  const Duration worth = 4 * move_estimate(lease) + settings_.least_quantum;
  for (GpuSlot gpu : turn_gpus(lease)) {
    const auto kept = reserved.find(gpu);
    if (kept != reserved.end() && kept->second.until < now_ + worth) return false;
  }
  return true;
}

void Turns::choose_for(LeaseState& lease, std::map<GpuSlot, Reservation>& reserved) {
  const Slots gpus = turn_gpus(lease);
  const std::vector<LeaseState*> holders = claimants(gpus, lease.terms.id);
  const bool kept =
      std::any_of(gpus.begin(), gpus.end(), [&](GpuSlot gpu) { return reserved.contains(gpu); });
  if (kept) {
    if (holders.empty() && may_backfill(lease, reserved)) enter(lease, true);
    return;
  }
  std::optional<TimePoint> until;
  for (const LeaseState* holder : holders) {
    if (yields(*holder, lease)) continue;
    const TimePoint from = holder->phase == Phase::kEntering ? now_ : holder->turn_since;
    until = std::max(until.value_or(now_), from + quantum(*holder));
  }
  if (until) {
    for (GpuSlot gpu : gpus) reserved[gpu] = {lease.terms.id, *until};
    return;
  }
  for (LeaseState* holder : holders) {
    if (holder->phase == Phase::kHolding) close(*holder);
    if (holder->phase == Phase::kEntering) abandon_entering(*holder);
  }
  enter(lease, false);
}

void Turns::choose() {
  for (auto& [id, lease] : leases_) {
    if (lease.phase == Phase::kEntering && !eligible(lease)) abandon_entering(lease);
  }
  std::map<GpuSlot, Reservation> reserved;
  for (LeaseState* lease : waiting_in_order()) {
    if (lease->phase == Phase::kApart) choose_for(*lease, reserved);
  }
}

bool Turns::claims_more(const LeaseState& a, const LeaseState& b, GpuSlot gpu) const {
  if (waits_for_room(a, gpu) != waits_for_room(b, gpu)) return waits_for_room(a, gpu);
  if (wants(a) != wants(b)) return wants(a);
  return goes_before(a, b);
}

bool Turns::waits_for_room(const LeaseState& lease, GpuSlot gpu) const {
  const Holding h = memory_.of_lease(lease.terms.id, gpu);
  return !(h.unbacked + h.wired_unbacked).is_zero();
}

// It waits for memory, and its work has not ended by itself: a capture ends only once it has what it allocates.
bool Turns::cannot_leave(const LeaseState& lease, GpuSlot gpu) const {
  return lease.phase == Phase::kLeaving && waits_for_room(lease, gpu) &&
         now_ >= lease.closed_at + settings_.drain_patience;
}

// Two may hold one GPU when turns begin there, or when one of them comes to use another GPU. Who waits for
// memory goes on: a thread of its that waits may be what keeps its kernels from ending. So also when it has
// been told to leave already; but if it cannot end before it has its memory, who waits beside it leaves, too: whoever of them
// drains makes room for the other.
void Turns::resolve_conflicts() {
  for (std::uint32_t i = 0; i < gpus_.size(); ++i) {
    if (!gpus_[i].contended) continue;
    const GpuSlot gpu{i};
    LeaseState* best = nullptr;
    std::vector<LeaseState*> holders = claimants({gpu}, {});
    const bool leaver_waits = std::any_of(holders.begin(), holders.end(), [&](LeaseState* l) {
      return l->phase == Phase::kLeaving && waits_for_room(*l, gpu);
    });
    const bool leaver_is_stuck = std::any_of(holders.begin(), holders.end(),
                                             [&](LeaseState* l) { return cannot_leave(*l, gpu); });
    std::erase_if(holders, [](const LeaseState* l) { return l->phase == Phase::kLeaving; });
    for (LeaseState* lease : holders) {
      const bool gives_way =
          lease->phase == Phase::kHolding && (leaver_is_stuck || !waits_for_room(*lease, gpu));
      if (leaver_waits && gives_way) close(*lease);
    }
    std::erase_if(holders, [](const LeaseState* l) { return l->phase == Phase::kLeaving; });
    for (LeaseState* lease : holders) {
      if (best == nullptr || claims_more(*lease, *best, gpu)) best = lease;
    }
    for (LeaseState* lease : holders) {
      if (lease == best) continue;
      if (lease->phase == Phase::kHolding) close(*lease);
      if (lease->phase == Phase::kEntering) abandon_entering(*lease);
    }
  }
}

// Who is still first goes on; nothing is moved for a turn of one's own. Where nobody waits nothing begins anew: who
// comes after the quantum is over need not wait for the end of another.
void Turns::renew_quanta() {
  const std::vector<LeaseState*> waiting = waiting_in_order();
  for (auto& [id, lease] : leases_) {
    if (lease.phase != Phase::kHolding || now_ < lease.turn_since + quantum(lease)) continue;
    const LeaseState* first = nullptr;
    for (const LeaseState* other : waiting) {
      if (first == nullptr && conflict(lease, *other)) first = other;
    }
    if (first != nullptr && !goes_before(*first, lease)) lease.turn_since = now_;
  }
}

}  // namespace gpurota::sched
