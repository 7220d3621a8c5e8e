#include "sched/turn_watch.h"

#include <algorithm>
#include <utility>

namespace gpurota::sched {

void TurnWatch::watch_deadline(LeaseState& lease) {
  if (table_.awake < lease.closed_awake + table_.settings.yield_deadline) return;
  if (!lease.reported)
    table_.report(Trouble::kNotYielding, lease.terms.id, {}, table_.settings.stop_at_deadline);
  lease.reported = true;
  if (!table_.settings.stop_at_deadline && is_deadlocked(lease)) refuse_growth(lease);
}

// Another waits for memory that it has, as it does for the other's, and neither ends before it has it.
bool TurnWatch::is_deadlocked(const LeaseState& lease) const {
  return std::any_of(lease.gpus.begin(), lease.gpus.end(), [&](GpuSlot gpu) {
    const auto is_other = [&](const auto& entry) {
      return entry.first != lease.terms.id && table_.cannot_leave(entry.second, gpu);
    };
    return table_.cannot_leave(lease, gpu) &&
           std::any_of(table_.leases.begin(), table_.leases.end(), is_other);
  });
}

// Its program is told that it is out of memory, and can end what it is at.
void TurnWatch::refuse_growth(LeaseState& lease) {
  for (TenantId id : lease.tenants) {
    for (const PendingGrow& grow : std::exchange(table_.tenants.at(id).growth, {})) {
      table_.memory.at(id, grow.gpu).withdraw(grow.bytes, grow.wired);
      const GpuUuid& gpu = table_.memory.uuid(grow.gpu);
      table_.actions.push_back(AnswerGrow{id, gpu, grow.seq, GrowAnswer::kRefusedCapacity, {}});
    }
  }
  table_.changed = true;
}

void TurnWatch::look_at_excess() {
  for (std::uint32_t i = 0; i < table_.gpus.size(); ++i) {
    if (!table_.memory.is_lost(GpuSlot{i})) look_at_excess(GpuSlot{i});
  }
}

// A context that takes more than was reserved for it is counted before others have made room: that is soon over.
void TurnWatch::look_at_excess(GpuSlot gpu) {
  constexpr Duration kLasts = std::chrono::seconds(2);
  GpuState& state = table_.gpus[gpu.value];
  if (table_.memory.used(gpu) <= table_.memory.capacity(gpu)) {
    state.over_since.reset();
    state.over_reported = false;
    return;
  }
  if (!state.over_since) state.over_since = table_.now;
  if (state.over_reported || table_.now < *state.over_since + kLasts) return;
  state.over_reported = true;
  table_.actions.push_back(
      ReportTrouble{Trouble::kOverCapacity, {}, {}, false, table_.memory.uuid(gpu), {}});
}

// A tenant that has just come or gone is soon known for what it is.
void TurnWatch::watch_room(LeaseState& lease, Wait obstacle) {
  const bool too_large = lease.phase == Phase::kApart && obstacle == Wait::kNoRoom;
  if (!too_large) {
    lease.no_room_since.reset();
    lease.no_room_reported = false;
    return;
  }
  if (!lease.no_room_since) lease.no_room_since = table_.now;
  if (lease.no_room_reported || table_.now < *lease.no_room_since + kNoRoomLasts) return;
  lease.no_room_reported = true;
  table_.report(Trouble::kNoRoom, lease.terms.id, {});
}

// Nobody can take memory from a process that does not answer: it comes back with the end of its lease. One lease at a time ends, as
// that may be enough.
void TurnWatch::watch_stopped(LeaseState& lease, Wait obstacle) {
  lease.is_held_up = obstacle == Wait::kHeldByStopped;
  if (!lease.is_held_up) {
    // Not at once: a process may go from one way not to answer to another, and give nothing.
    if (lease.phase == Phase::kHolding || !table_.wants(lease)) lease.held_up = Duration::zero();
    return;
  }
  const Duration bound = table_.settings.stopped_deadline;
  if (bound == Duration::zero() || lease.held_up < bound) return;
  lease.held_up = Duration::zero();
  const TenantId most = obstacles_.has_most_of(lease);
  if (most != TenantId())
    table_.report(Trouble::kUnreachable, table_.tenants.at(most).lease, most, true);
}

}  // namespace gpurota::sched
