#include "sched/turns.h"

#include "sched/host_needs.h"
#include "sched/residency_rules.h"
#include "sched/turn_act.h"
#include "sched/turn_decide.h"
#include "sched/turn_show.h"
#include "sched/turn_watch.h"

#include <algorithm>
#include <utility>

namespace gpurota::sched {
namespace {

// Each round moves at least one lease into its next phase; there are few phases.
constexpr int kMostRounds = 200;

void begin(TurnTable& table, TimePoint now) {
  advance_time(table, now);
  table.now = std::max(table.now, now);
  table.actions.clear();
}

void watch_leases(TurnTable& table) {
  for (auto& [id, lease] : table.leases) {
    const bool waits = waits_for_memory(table, lease);
    const Wait obstacle = waits ? hindrance(table, lease) : Wait::kNothing;
    watch_room(table, lease, obstacle);
    watch_stopped(table, lease, obstacle);
    watch_debts(table, lease);
    if (lease.phase != Phase::kLeaving) continue;
    let_through(table, lease);
    watch_deadline(table, lease);
  }
}

void step(TurnTable& table) {
  leave_aside(table);
  update_contention(table);
  update_spent_budgets(table);
  update_wishes(table);
  for (auto& [id, lease] : table.leases) finish_leaving(table, lease);
  resolve_conflicts(table);
  choose_next(table);
  move_memory(table);
  for (auto& [id, lease] : table.leases) {
    finish_entering(table, lease);
    if (lease.phase == Phase::kHolding) open_resident(table, lease);
  }
  if (table.changed) return;
  renew_quanta(table);
  update_budgets(table);
  watch_excess(table);
  watch_leases(table);
}

// Brings the table up to `table.now`, and collects the actions that follow.
void settle(TurnTable& table) {
  if (table.on_hold()) return;
  apply_held_growth(table);
  for (GpuState& gpu : table.gpus) gpu.budget.advance(table.now, gpu.draining);
  for (int i = 0; i < kMostRounds; ++i) {
    table.changed = false;
    step(table);
    if (!table.changed) break;
  }
  // If a growth was answered, the lease that asked may be idle from now on, not only from the next
  // event.
  update_wishes(table);
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
    // More capacity is never refused, even if something does not fit already.
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
  begin(table_, now);
  const auto found = table_.leases.find(lease);
  if (found == table_.leases.end()) return {};
  const std::set<TenantId> tenants = found->second.tenants;
  for (TenantId tenant : tenants) apply(table_, RemoveTenant{tenant});
  table_.leases.erase(lease);
  table_.memory.set_aside(lease, false);
  table_.memory.set_parked(lease, false);
  table_.memory.set_oversize(lease, {});
  settle(table_);
  return std::move(table_.actions);
}

Actions Turns::handle(const Event& event, TimePoint now) {
  begin(table_, now);
  std::visit([&](const auto& e) { apply(table_, e); }, event);
  settle(table_);
  return std::move(table_.actions);
}

Actions Turns::set_aside(LeaseId lease, bool aside, TimePoint now) {
  begin(table_, now);
  const auto found = table_.leases.find(lease);
  if (found == table_.leases.end()) return {};
  found->second.aside = aside;
  table_.memory.set_aside(lease, aside);
  settle(table_);
  return std::move(table_.actions);
}

Actions Turns::set_parked(LeaseId lease, bool parked, TimePoint now) {
  begin(table_, now);
  if (!table_.leases.contains(lease)) return {};
  table_.memory.set_parked(lease, parked);
  settle(table_);
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

std::optional<TimePoint> Turns::next_deadline() const { return sched::next_deadline(table_); }

std::optional<LeaseView> Turns::explain(LeaseId lease, TimePoint now) const {
  return explain_lease(table_, lease, now);
}

std::optional<LeaseTurn> Turns::turn_of(LeaseId lease) const {
  return sched::turn_of(table_, lease);
}

std::vector<GpuView> Turns::view() const { return view_gpus(table_); }

}  // namespace gpurota::sched
