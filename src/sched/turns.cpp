#include "sched/turns.h"

#include "sched/host_needs.h"
#include "sched/residency_rules.h"
#include "sched/turn_choice.h"
#include "sched/turn_debts.h"
#include "sched/turn_events.h"
#include "sched/turn_moves.h"
#include "sched/turn_reader.h"
#include "sched/turn_watch.h"

#include <algorithm>
#include <utility>

namespace gpurota::sched {
namespace {

// Each round moves at least one lease into its next phase; there are few phases.
constexpr int kMostRounds = 200;

struct Parts {
  explicit Parts(TurnTable& table)
      : order(table),
        length(table, order),
        obstacles(table),
        clocks(table, order, length),
        phases(table, obstacles, clocks),
        choice(table, order, length, obstacles, phases),
        moves(table, order),
        watch(table, obstacles),
        debts(table, obstacles),
        events(table, phases, clocks) {}
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  TurnOrder order;
  TurnLength length;
  TurnObstacles obstacles;
  TurnClocks clocks;
  TurnPhases phases;
  TurnChoice choice;
  TurnMoves moves;
  TurnWatch watch;
  TurnDebts debts;
  TurnEvents events;
};

void begin(TurnTable& table, Parts& parts, TimePoint now) {
  parts.debts.advance(now);
  table.now = std::max(table.now, now);
  table.actions.clear();
}

void look_at_leases(TurnTable& table, Parts& parts) {
  for (auto& [id, lease] : table.leases) {
    const bool waits = parts.obstacles.waits_for_memory(lease);
    const Wait obstacle = waits ? parts.obstacles.hindrance(lease) : Wait::kNothing;
    parts.watch.watch_room(lease, obstacle);
    parts.watch.watch_stopped(lease, obstacle);
    parts.debts.watch(lease);
    if (lease.phase != Phase::kLeaving) continue;
    parts.phases.let_through(lease);
    parts.watch.watch_deadline(lease);
  }
}

void step(TurnTable& table, Parts& parts) {
  parts.phases.leave_aside();
  parts.clocks.look_at_contention();
  parts.clocks.look_at_spent_budgets();
  parts.clocks.look_at_wishes();
  for (auto& [id, lease] : table.leases) parts.phases.finish_leaving(lease);
  parts.choice.resolve_conflicts();
  parts.choice.choose();
  parts.moves.move();
  for (auto& [id, lease] : table.leases) {
    parts.phases.finish_entering(lease);
    if (lease.phase == Phase::kHolding) parts.phases.open_resident(lease);
  }
  if (table.changed) return;
  parts.choice.renew_quanta();
  parts.clocks.look_at_budgets();
  parts.watch.look_at_excess();
  look_at_leases(table, parts);
}

// Brings everything up to `table.now` and collects what follows.
void settle(TurnTable& table, Parts& parts) {
  if (table.on_hold()) return;
  parts.events.judge_what_was_asked_on_hold();
  for (GpuState& gpu : table.gpus) gpu.budget.advance(table.now, gpu.draining);
  for (int i = 0; i < kMostRounds; ++i) {
    table.changed = false;
    step(table, parts);
    if (!table.changed) break;
  }
  // A growth may have been answered: its lease is idle from now, not from the next event.
  parts.clocks.look_at_wishes();
}

}  // namespace

Turns::Turns(const Settings& settings) { set(settings); }

void Turns::set(const Settings& settings) {
  table_.settings = settings;
  table_.memory.set_host_budget(settings.host_budget);
  table_.memory.set_piece(settings.piece);
  for (GpuState& gpu : table_.gpus)
    gpu.budget.set(settings.priority_share, settings.priority_burst);
}

Result<void> Turns::set_gpu(const GpuSettings& settings, bool anyway) {
  const auto known = table_.memory.slot_of(settings.uuid);
  if (known && !table_.memory.is_lost(*known) && !anyway) {
    // More is always better than what is, whatever does not fit already.
    const bool less = settings.capacity < table_.memory.capacity(*known);
    if (less && !ResidencyRules(table_.memory).would_fit(*known, settings.capacity)) {
      return fail(Code::kLimit, "the leases on this GPU do not fit " +
                                    to_string(settings.capacity) +
                                    ": the largest would not fit in GPU memory, or the others "
                                    "would not fit in host memory; end one of them first");
    }
    Residency after = table_.memory;
    after.set_capacity(*known, settings.capacity);
    if (settings.mode == TurnsMode::kOff && !after.deficit(*known).is_zero()) {
      return fail(Code::kLimit, "turns cannot be off: the leases on this GPU exceed it by " +
                                    to_string(after.deficit(*known)) + "; end one of them first");
    }
  }
  const GpuSlot slot = table_.memory.add_gpu(settings.uuid, settings.capacity);
  table_.gpus.resize(table_.memory.gpu_count());
  table_.gpus[slot.value].settings = settings;
  table_.gpus[slot.value].budget.set(table_.settings.priority_share,
                                     table_.settings.priority_burst);
  return {};
}

void Turns::set_outsiders(const GpuUuid& gpu, Bytes bytes) {
  if (const auto slot = table_.memory.slot_of(gpu)) table_.memory.set_outsiders(*slot, bytes);
}

Result<void> Turns::check_lease(const LeaseTerms& terms) const {
  for (const LeaseTerms::Gpu& gpu : terms.gpus) {
    const auto slot = table_.memory.slot_of(gpu.uuid);
    if (!slot || table_.memory.is_lost(*slot))
      return fail(Code::kNotFound, "GPU " + gpu.uuid.value + " takes no swap leases");
    const Bytes most = table_.memory.capacity(*slot) - table_.memory.wired(*slot);
    if (gpu.limit > most) {
      return fail(Code::kLimit, "a swap lease can have at most " + to_string(most) +
                                    " there now: memory that cannot be moved takes " +
                                    to_string(table_.memory.wired(*slot)) + "; ask for less");
    }
  }
  return check_oversize(terms);
}

void Turns::add_lease(const LeaseTerms& terms) {
  LeaseState lease;
  lease.terms = terms;
  Bytes oversize;
  for (const LeaseTerms::Gpu& gpu : terms.gpus) {
    oversize += gpu.oversize;
    lease.gpus.push_back(table_.memory.add_lost_gpu(gpu.uuid));
  }
  table_.gpus.resize(table_.memory.gpu_count());
  table_.memory.set_oversize(terms.id, oversize);
  table_.leases.insert_or_assign(terms.id, std::move(lease));
}

void Turns::update_lease(const LeaseTerms& terms) {
  const auto found = table_.leases.find(terms.id);
  if (found == table_.leases.end()) return;
  LeaseTerms& now = found->second.terms;
  now.priority = terms.priority;
  now.weight = terms.weight;
  now.quantum = terms.quantum;
  for (LeaseTerms::Gpu& gpu : now.gpus) {
    for (const LeaseTerms::Gpu& wanted : terms.gpus) {
      if (wanted.uuid == gpu.uuid) gpu = wanted;
    }
  }
}

Actions Turns::remove_lease(LeaseId lease, TimePoint now) {
  Parts parts(table_);
  begin(table_, parts, now);
  const auto found = table_.leases.find(lease);
  if (found == table_.leases.end()) return {};
  const std::set<TenantId> tenants = found->second.tenants;
  for (TenantId tenant : tenants) parts.events.on(RemoveTenant{tenant});
  table_.leases.erase(lease);
  table_.memory.set_aside(lease, false);
  table_.memory.set_oversize(lease, {});
  settle(table_, parts);
  return std::move(table_.actions);
}

Actions Turns::handle(const Event& event, TimePoint now) {
  Parts parts(table_);
  begin(table_, parts, now);
  std::visit([&](const auto& e) { parts.events.on(e); }, event);
  settle(table_, parts);
  return std::move(table_.actions);
}

Actions Turns::set_aside(LeaseId lease, bool aside, TimePoint now) {
  Parts parts(table_);
  begin(table_, parts, now);
  const auto found = table_.leases.find(lease);
  if (found == table_.leases.end()) return {};
  found->second.aside = aside;
  table_.memory.set_aside(lease, aside);
  settle(table_, parts);
  return std::move(table_.actions);
}

Bytes Turns::available(LeaseId lease, const GpuUuid& gpu) const {
  const auto slot = table_.memory.slot_of(gpu);
  const auto known = table_.leases.find(lease);
  if (!slot || table_.memory.is_lost(*slot) || known == table_.leases.end()) return {};
  Bytes limit;
  for (const LeaseTerms::Gpu& terms : known->second.terms.gpus) {
    if (terms.uuid == gpu) limit = terms.limit;
  }
  const Bytes most = ResidencyRules(table_.memory).available(lease, *slot, limit);
  const bool off = table_.gpus[slot->value].settings.mode == TurnsMode::kOff;
  return off ? std::min(most, table_.memory.capacity(*slot) - table_.memory.wanted(*slot)) : most;
}

bool Turns::could_be_aside(LeaseId lease) const {
  return ResidencyRules(table_.memory).host_could_hold(lease);
}

bool Turns::could_come_back(LeaseId lease) const {
  return ResidencyRules(table_.memory).could_come_back(lease);
}

Result<void> Turns::check_oversize(const LeaseTerms& terms) const {
  Bytes wanted;
  for (const LeaseTerms::Gpu& gpu : terms.gpus) wanted += gpu.oversize;
  const Bytes left = HostNeeds(table_.memory).left();
  if (wanted <= left) return {};
  return fail(Code::kLimit, to_string(wanted) + " of host memory is needed, and " +
                                to_string(left) + " can be reserved now (of " +
                                to_string(table_.settings.host_budget) +
                                " for all swap leases); ask for less");
}

std::optional<TimePoint> Turns::next_deadline() const { return TurnReader(table_).next_deadline(); }

std::optional<LeaseView> Turns::explain(LeaseId lease, TimePoint now) const {
  return TurnReader(table_).explain(lease, now);
}

std::optional<LeaseTurn> Turns::turn_of(LeaseId lease) const {
  return TurnReader(table_).turn_of(lease);
}

std::vector<GpuView> Turns::view() const { return TurnReader(table_).view(); }

}  // namespace gpurota::sched
