#include "sched/turn_phases.h"

#include "sched/seconds.h"

#include <algorithm>
#include <utility>

namespace gpurota::sched {
namespace {

constexpr std::size_t kSwitchesKept = 16;

}  // namespace

void TurnPhases::set_gate(TenantId id, GateOrder order) {
  TenantState& tenant = table_.tenants.at(id);
  ++tenant.gate_seq;
  if (order != GateOrder::kLetOneThrough) tenant.gate_open = order == GateOrder::kOpen;
  tenant.busy = true;  // until it says otherwise of this very order
  table_.actions.emplace_back(SetGate{id, tenant.gate_seq, order});
}

void TurnPhases::enter(LeaseState& lease, bool backfill) {
  lease.phase = Phase::kEntering;
  lease.entering_since = table_.now;
  lease.backfill = backfill;
  for (GpuSlot gpu : lease.gpus) table_.gpus[gpu.value].since_entering = {};
  table_.changed = true;
}

// The first since turns began finds no host memory ready, and says nothing of those to come.
bool TurnPhases::measure_move(const LeaseState& lease) {
  bool measured = false;
  for (GpuSlot slot : table_.turn_gpus(lease)) {
    GpuState& gpu = table_.gpus[slot.value];
    const Bytes moved = gpu.since_entering.in + gpu.since_entering.out;
    const bool is_switch = lease.phase == Phase::kHolding && gpu.last_holder != lease.terms.id;
    if (gpu.last_holder == LeaseId{} || (!is_switch && !MoveCost::tells_rate(moved))) continue;
    gpu.cost.measure(moved, table_.now - lease.entering_since);
    measured = true;
  }
  return measured;
}

bool TurnPhases::has_moved(const LeaseState& lease) const {
  return std::any_of(lease.gpus.begin(), lease.gpus.end(), [this](GpuSlot gpu) {
    const Moved& moved = table_.gpus[gpu.value].since_entering;
    return !(moved.in + moved.out).is_zero();
  });
}

// What has arrived stays until somebody needs the room.
void TurnPhases::abandon_entering(LeaseState& lease) {
  measure_move(lease);
  for (GpuSlot gpu : table_.turn_gpus(lease)) {
    table_.gpus[gpu.value].since_switch.took += table_.now - lease.entering_since;
  }
  lease.phase = Phase::kApart;
  lease.backfill = false;
  table_.changed = true;
}

void TurnPhases::finish_entering(LeaseState& lease) {
  if (lease.phase != Phase::kEntering) return;
  const Slots gpus = table_.turn_gpus(lease);
  for (const LeaseState* other : table_.claimants(gpus, lease.terms.id)) {
    if (other->phase != Phase::kLeaving) continue;
    // What its predecessor takes to drain is not the cost of moving.
    if (!has_moved(lease)) lease.entering_since = table_.now;
    return;
  }
  // Also what it has asked for and not got: else a short turn is over before the room is made, every time.
  for (TenantId id : lease.tenants) {
    for (GpuSlot gpu : lease.gpus) {
      const Holding& h = table_.memory.at(id, gpu);
      if (!h.out().is_zero() || !h.coming.is_zero() || !h.leaving.is_zero()) return;
      if (!(h.unbacked + h.wired_unbacked).is_zero()) return;
    }
  }
  lease.phase = Phase::kHolding;
  lease.turn_since = table_.now;
  lease.waits_since.reset();
  record_switch(lease);
  table_.changed = true;
}

void TurnPhases::record_switch(LeaseState& lease) {
  const Duration took = table_.now - lease.entering_since;
  if (measure_move(lease)) lease.cost.add(seconds(took));
  for (GpuSlot slot : table_.turn_gpus(lease)) {
    GpuState& gpu = table_.gpus[slot.value];
    gpu.since_switch.took += took;
    if (gpu.last_holder == lease.terms.id) continue;
    ++gpu.counts.handovers;
    gpu.switches.push_back(
        {table_.now, gpu.last_holder, lease.terms.id, std::exchange(gpu.since_switch, {})});
    if (gpu.switches.size() > kSwitchesKept) gpu.switches.pop_front();
    gpu.last_holder = lease.terms.id;
  }
}

// Also for tenants that came while the lease was holding.
void TurnPhases::open_resident(LeaseState& lease) {
  for (TenantId id : lease.tenants) {
    const TenantState& tenant = table_.tenants.at(id);
    if (tenant.gate_open || !tenant.reachable || tenant.dead) continue;
    const bool here = std::all_of(lease.gpus.begin(), lease.gpus.end(), [&](GpuSlot gpu) {
      const Holding& h = table_.memory.at(id, gpu);
      return h.out().is_zero() && h.coming.is_zero() && h.leaving.is_zero();
    });
    if (here) set_gate(id, GateOrder::kOpen);
  }
}

void TurnPhases::close(LeaseState& lease) {
  lease.phase = Phase::kLeaving;
  lease.backfill = false;
  lease.reported = false;
  lease.closed_at = table_.now;
  lease.closed_awake = table_.awake;
  lease.letting = {table_.now, table_.settings.drain_patience, {}};
  for (TenantId id : lease.tenants) {
    table_.tenants.at(id).lets = 0;
    if (table_.tenants.at(id).gate_open) set_gate(id, GateOrder::kClose);
  }
  table_.changed = true;
}

void TurnPhases::reopen(LeaseState& lease) {
  lease.phase = Phase::kHolding;
  lease.turn_since = table_.now;
  table_.changed = true;
}

// A tenant that cannot answer is not waited for: its gate is shut, and its memory stays where it is.
void TurnPhases::finish_leaving(LeaseState& lease) {
  if (lease.phase != Phase::kLeaving) return;
  const bool drained = std::all_of(lease.tenants.begin(), lease.tenants.end(), [&](TenantId id) {
    const TenantState& tenant = table_.tenants.at(id);
    return tenant.drained() || !tenant.reachable || tenant.dead;
  });
  if (drained) {
    bool all = true;
    for (TenantId id : lease.tenants) {
      TenantState& tenant = table_.tenants.at(id);
      tenant.undrained = !tenant.drained();
      all = all && (tenant.drained() || tenant.dead);
    }
    if (all) lease.drain_owed = Duration::zero();
    clocks_.stop_clock(lease);
    lease.phase = Phase::kApart;
    table_.changed = true;
  } else if (!lease.aside && !obstacles_.somebody_waits_for(lease)) {
    reopen(lease);
  }
}

// A kernel may wait for a launch that stands at the gate. One submission passes at a time, first of
// those whose GPU is drained: then it is not more of what has to drain. The same tenant goes on as
// long as it keeps draining (it catches up with the others); anything else has to stand still for
// a while, which grows, so that long kernels are not fed for ever.
void TurnPhases::let_through(LeaseState& lease) {
  Letting& letting = lease.letting;
  TenantId best{};
  int best_rank = 0;
  for (TenantId id : lease.tenants) {
    const TenantState& t = table_.tenants.at(id);
    if (!t.reachable || t.dead) continue;
    if (!t.answered()) return;  // what it does with the last order is not known yet
    if (t.waiting == 0) continue;
    const int rank = t.drained() ? (id == letting.last ? 4 : 3) : t.ready > 0 ? 2 : 1;
    const bool fewer = rank == best_rank && t.lets < table_.tenants.at(best).lets;
    if (rank > best_rank || fewer) {
      best = id;
      best_rank = rank;
    }
  }
  if (best_rank == 0) return;
  const bool catching_up = best_rank == 4 || (best_rank == 2 && best == letting.last);
  if (!catching_up) {
    if (table_.now < letting.since + letting.patience) return;
    letting.patience *= 4;
  }
  letting.since = table_.now;
  letting.last = best;
  ++table_.tenants.at(best).lets;
  set_gate(best, GateOrder::kLetOneThrough);
}

// Before anything else is decided: nobody may count on it any more.
void TurnPhases::leave_aside() {
  for (auto& [id, lease] : table_.leases) {
    if (!lease.aside) continue;
    if (lease.phase == Phase::kEntering) abandon_entering(lease);
    if (lease.phase == Phase::kHolding) close(lease);
  }
}

}  // namespace gpurota::sched
