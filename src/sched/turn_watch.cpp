#include "sched/turn_watch.h"

#include "sched/turn_decide.h"

#include <algorithm>
#include <utility>

namespace gpurota::sched {

namespace {

// The most time that one event adds to what is owed. A tick comes each second while something is
// owed.
constexpr Duration kMostStep = std::chrono::seconds(2);

// A lease that waits for memory itself owes nothing: its work may be unable to end without that
// memory.
bool drains_for_others(const TurnTable& table, const LeaseState& lease) {
  if (lease.phase != Phase::kLeaving) return false;
  const bool waits_itself = std::any_of(lease.gpus.begin(), lease.gpus.end(), [&](GpuSlot gpu) {
    return table.waits_for_room(lease, gpu);
  });
  return !waits_itself && (lease.aside || somebody_waits_for(table, lease));
}

void count_debts(TurnTable& table, LeaseState& lease, Duration step) {
  if (lease.is_held_up) lease.held_up += step;
  if (drains_for_others(table, lease)) lease.drain_owed += step;
  const bool enters = lease.phase == Phase::kEntering;
  for (const TenantId id : lease.tenants) {
    TenantState& tenant = table.tenants.at(id);
    if (!tenant.can_answer()) continue;
    for (const GpuSlot gpu : lease.gpus) {
      const Holding& held = table.memory.at(id, gpu);
      const bool restores = enters && !held.coming.is_zero() && somebody_waits_for(table, lease);
      if (!held.leaving.is_zero() || restores) tenant.moves[gpu].owed += step;
    }
  }
}

}  // namespace

void advance_time(TurnTable& table, TimePoint now) {
  const Duration step = std::clamp<Duration>(now - table.now, Duration::zero(), kMostStep);
  if (table.now == TimePoint{} || step == Duration::zero() || table.on_hold()) return;
  table.awake += step;
  for (auto& [id, lease] : table.leases) count_debts(table, lease, step);
}

void watch_debts(TurnTable& table, LeaseState& lease) {
  const Duration bound = table.settings.longest_drain;
  if (bound == Duration::zero()) return;
  const Duration owed = table.owed(lease);
  if (owed < bound / 2) {
    lease.debt_told = DebtTold::kNothing;
    return;
  }
  if (lease.debt_told == DebtTold::kNothing) {
    lease.debt_told = DebtTold::kHalf;
    table.report_debt(lease.terms.id, std::max<Duration>(bound - owed, Duration::zero()));
  }
  if (owed < bound || lease.debt_told == DebtTold::kEnd) return;
  lease.debt_told = DebtTold::kEnd;
  table.report(Trouble::kNotYielding, lease.terms.id, {}, true);
}

namespace {

// Whether this lease and another lease wait for each other's memory, so that neither can end its
// work.
bool is_deadlocked(const TurnTable& table, const LeaseState& lease) {
  return std::any_of(lease.gpus.begin(), lease.gpus.end(), [&](GpuSlot gpu) {
    const auto is_other = [&](const auto& entry) {
      return entry.first != lease.terms.id && table.cannot_leave(entry.second, gpu);
    };
    return table.cannot_leave(lease, gpu) &&
           std::any_of(table.leases.begin(), table.leases.end(), is_other);
  });
}

// Refuses the memory that programs of the lease wait for, so that they can end their work.
void refuse_growth(TurnTable& table, LeaseState& lease) {
  for (TenantId id : lease.tenants) {
    for (const PendingGrow& grow : std::exchange(table.tenants.at(id).growth, {})) {
      table.memory.at(id, grow.gpu).withdraw(grow.bytes, grow.wired);
      const GpuUuid& gpu = table.memory.uuid(grow.gpu);
      table.actions.push_back(AnswerGrow{id, gpu, grow.seq, GrowAnswer::kRefusedCapacity, {}});
    }
  }
  table.changed = true;
}

// Reports only an excess that lasts. A short excess is normal: a context may take more memory than
// was reserved for it, and this memory is counted before other leases have made room for it.
void watch_excess_of(TurnTable& table, GpuSlot gpu) {
  constexpr Duration kLasts = std::chrono::seconds(2);
  GpuState& state = table.gpus[gpu.value];
  if (table.memory.used(gpu) <= table.memory.capacity(gpu)) {
    state.over_since.reset();
    state.over_reported = false;
    return;
  }
  if (!state.over_since) state.over_since = table.now;
  if (state.over_reported || table.now < *state.over_since + kLasts) return;
  state.over_reported = true;
  table.actions.push_back(
      ReportTrouble{Trouble::kOverCapacity, {}, {}, false, table.memory.uuid(gpu), {}});
}

}  // namespace

void watch_deadline(TurnTable& table, LeaseState& lease) {
  if (table.awake < lease.closed_awake + table.settings.yield_deadline) return;
  if (!lease.reported)
    table.report(Trouble::kNotYielding, lease.terms.id, {}, table.settings.stop_at_deadline);
  lease.reported = true;
  if (!table.settings.stop_at_deadline && is_deadlocked(table, lease)) refuse_growth(table, lease);
}

void watch_excess(TurnTable& table) {
  for (std::uint32_t i = 0; i < table.gpus.size(); ++i) {
    if (!table.memory.is_lost(GpuSlot{i})) watch_excess_of(table, GpuSlot{i});
  }
}

// Reports only a lack of room that lasts: the memory of a tenant that has just come or gone is soon
// known.
void watch_room(TurnTable& table, LeaseState& lease, Wait obstacle) {
  const bool too_large = lease.phase == Phase::kApart && obstacle == Wait::kNoRoom;
  if (!too_large) {
    lease.no_room_since.reset();
    lease.no_room_reported = false;
    return;
  }
  if (!lease.no_room_since) lease.no_room_since = table.now;
  if (lease.no_room_reported || table.now < *lease.no_room_since + kNoRoomLasts) return;
  lease.no_room_reported = true;
  table.report(Trouble::kNoRoom, lease.terms.id, {});
}

// Memory of a process that does not answer comes back only with the end of its lease. One lease at
// a time ends, as that may be enough.
void watch_stopped(TurnTable& table, LeaseState& lease, Wait obstacle) {
  lease.is_held_up = obstacle == Wait::kHeldByStopped;
  if (!lease.is_held_up) {
    // A short interruption does not reset the time: a process may change from one way of not
    // answering to another without giving memory back.
    if (lease.phase == Phase::kHolding || !table.wants(lease)) lease.held_up = Duration::zero();
    return;
  }
  const Duration bound = table.settings.stopped_deadline;
  if (bound == Duration::zero() || lease.held_up < bound) return;
  lease.held_up = Duration::zero();
  const TenantId most = has_most_of(table, lease);
  if (most != TenantId())
    table.report(Trouble::kUnreachable, table.tenants.at(most).lease, most, true);
}

}  // namespace gpurota::sched
