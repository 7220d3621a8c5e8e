#include "sched/turn_clocks.h"

#include "sched/seconds.h"

#include <algorithm>

namespace gpurota::sched {

// Turns begin at once and end only when all has fitted for a while: a program that allocates and frees
// at the border would else close and open everybody's gates each time.
void TurnClocks::look_at_contention() {
  for (std::uint32_t i = 0; i < table_.gpus.size(); ++i) {
    GpuState& gpu = table_.gpus[i];
    const GpuSlot slot{i};
    const bool forced = gpu.settings.mode == TurnsMode::kOn && table_.memory.shared(slot);
    if (forced || !table_.memory.deficit(slot).is_zero()) {
      gpu.fits_since.reset();
      if (!gpu.contended) begin_contention(slot);
    } else if (gpu.contended) {
      if (!gpu.fits_since) gpu.fits_since = table_.now;
      if (table_.now < *gpu.fits_since + table_.settings.calm) continue;
      gpu.contended = false;
      gpu.last_holder = {};
      table_.changed = true;
    }
  }
  keep_clocks();
}

// Whoever has run there starts from the same line. Not who stands in it for another of its GPUs: turns that begin and end
// here again and again would put it back each time.
void TurnClocks::begin_contention(GpuSlot gpu) {
  table_.gpus[gpu.value].contended = true;
  table_.changed = true;
  double most = 0;
  for (const auto& [id, lease] : table_.leases) {
    if (contains(lease.gpus, gpu))
      most = std::max(most, lease.clock.read(table_.now, lease.terms.weight));
  }
  for (auto& [id, lease] : table_.leases) {
    const bool ran = lease.phase != Phase::kApart && !lease.clock.running();
    if (ran && contains(lease.gpus, gpu)) lease.clock.catch_up(most);
  }
}

// The clock runs while a turn is held, until its work has drained.
void TurnClocks::keep_clocks() {
  for (auto& [id, lease] : table_.leases) {
    const bool has_turn = lease.phase == Phase::kHolding && !table_.turn_gpus(lease).empty();
    if (has_turn && !lease.clock.running()) lease.clock.start(table_.now);
    if (!has_turn && lease.phase != Phase::kLeaving) stop_clock(lease);
  }
}

// What the least served of those that wait, or have the turn, has had. Who has it may want nothing at the moment of a look.
std::optional<double> TurnClocks::least_served(const LeaseState& besides) const {
  std::optional<double> least;
  for (const auto& [id, other] : table_.leases) {
    const bool counts =
        other.wanted || other.phase == Phase::kEntering || other.phase == Phase::kHolding;
    if (id == besides.terms.id || !counts || !table_.conflict(besides, other)) continue;
    const double value = other.clock.read(table_.now, other.terms.weight);
    least = least ? std::min(*least, value) : value;
  }
  return least;
}

// Who comes, or comes back, brings no credit, and no debt beyond a window: what it had while nobody else
// could use it.
void TurnClocks::join_line(LeaseState& lease) {
  constexpr double kWindow = 4;
  const std::optional<double> least = least_served(lease);
  if (!least) return;
  lease.clock.catch_up(*least);
  lease.clock.hold_back(*least + kWindow * seconds(length_.quantum(lease)));
}

// A tenant counts as busy until it has answered an order, which says nothing of it: a pause goes on meanwhile.
void TurnClocks::keep_pauses(LeaseState& lease) {
  bool working = false;
  bool unknown = false;
  for (TenantId id : lease.tenants) {
    const TenantState& tenant = table_.tenants.at(id);
    working = working || tenant.asks() || (tenant.busy && tenant.answered());
    unknown = unknown || !tenant.answered();
  }
  if (working && lease.idle_since) {
    lease.pauses.add(table_.now - *lease.idle_since);
    lease.idle_since.reset();
  }
  if (!working && !unknown && !lease.idle_since) lease.idle_since = table_.now;
}

void TurnClocks::look_at_wishes() {
  for (auto& [id, lease] : table_.leases) {
    keep_pauses(lease);
    const bool wishes = table_.wants(lease);
    const bool takes_turns = !table_.turn_gpus(lease).empty();
    const bool comes_back = wishes && !lease.wanted && lease.phase == Phase::kApart;
    if (comes_back || (takes_turns && !lease.takes_turns)) join_line(lease);
    lease.takes_turns = takes_turns;
    lease.above_soft = order_.is_above_soft(lease);
    lease.wanted = wishes;
    if (!wishes || lease.phase != Phase::kApart) {
      lease.waits_since.reset();
    } else if (!lease.waits_since) {
      lease.waits_since = table_.now;
    }
  }
}

// Drained while a holder keeps somebody of lower priority waiting, and until that one has its turn back: one that
// comes and goes faster than memory moves would else hold the others back for ever.
void TurnClocks::look_at_budgets() {
  for (std::uint32_t i = 0; i < table_.gpus.size(); ++i) {
    const GpuSlot gpu{i};
    const std::vector<LeaseState*> holders = table_.claimants({gpu}, {});
    const auto last = table_.leases.find(table_.gpus[i].last_holder);
    table_.gpus[i].draining =
        std::any_of(table_.leases.begin(), table_.leases.end(), [&](const auto& entry) {
          const LeaseState& lease = entry.second;
          const auto is_above = [&](const LeaseState* other) {
            return order_.rank(lease) < order_.rank(*other);
          };
          if (!lease.wanted || !contains(table_.turn_gpus(lease), gpu)) return false;
          if (lease.phase == Phase::kEntering)
            return last != table_.leases.end() && is_above(&last->second);
          return lease.phase == Phase::kApart &&
                 std::any_of(holders.begin(), holders.end(), is_above);
        });
  }
}

// A lease of several GPUs needs all of them at once: while the budget of one is spent, priorities count for nothing on
// the others either, or it would wait for the moment in which all happen to be.
void TurnClocks::look_at_spent_budgets() {
  for (GpuState& gpu : table_.gpus) gpu.spent = gpu.budget.spent();
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& [id, lease] : table_.leases) {
      const Slots gpus = table_.turn_gpus(lease);
      const auto is_spent = [&](GpuSlot g) { return table_.gpus[g.value].spent; };
      const bool any = std::any_of(gpus.begin(), gpus.end(), is_spent);
      if (!any || std::all_of(gpus.begin(), gpus.end(), is_spent)) continue;
      for (GpuSlot g : gpus) table_.gpus[g.value].spent = true;
      changed = true;
    }
  }
}

void TurnClocks::stop_clock(LeaseState& lease) {
  if (!lease.clock.running()) return;
  lease.clock.stop(table_.now, lease.terms.weight);
  lease.held_last = table_.now;
  join_line(lease);
}

}  // namespace gpurota::sched
