// From one phase of a lease into the next: gates, draining, deadlines.
#include "sched/seconds.h"
#include "sched/turns.h"

#include <algorithm>
#include <utility>

namespace gpurota::sched {
namespace {

constexpr std::size_t kSwitchesKept = 16;

}  // namespace

void Turns::set_gate(TenantId id, GateOrder order) {
  TenantState& tenant = tenants_.at(id);
  ++tenant.gate_seq;
  if (order != GateOrder::kLetOneThrough) tenant.gate_open = order == GateOrder::kOpen;
  tenant.busy = true;  // until it says otherwise of this very order
  actions_.push_back(SetGate{id, tenant.gate_seq, order});
}

void Turns::enter(LeaseState& lease, bool backfill) {
  lease.phase = Phase::kEntering;
  lease.entering_since = now_;
  lease.backfill = backfill;
  for (GpuSlot gpu : lease.gpus) gpus_[gpu.value].since_entering = {};
  changed_ = true;
}

// The first since turns began finds no host memory ready, and says nothing of those to come.
bool Turns::measure_move(const LeaseState& lease) {
  bool measured = false;
  for (GpuSlot slot : turn_gpus(lease)) {
    GpuState& gpu = gpus_[slot.value];
    const Bytes moved = gpu.since_entering.in + gpu.since_entering.out;
    const bool is_switch = lease.phase == Phase::kHolding && gpu.last_holder != lease.terms.id;
    if (gpu.last_holder == LeaseId{} || (!is_switch && !MoveCost::tells_rate(moved))) continue;
    gpu.cost.measure(moved, now_ - lease.entering_since);
    measured = true;
  }
  return measured;
}

bool Turns::has_moved(const LeaseState& lease) const {
  return std::any_of(lease.gpus.begin(), lease.gpus.end(), [this](GpuSlot gpu) {
    const Moved& moved = gpus_[gpu.value].since_entering;
    return !(moved.in + moved.out).is_zero();
  });
}

// What has arrived stays until somebody needs the room.
void Turns::abandon_entering(LeaseState& lease) {
  measure_move(lease);
  for (GpuSlot gpu : turn_gpus(lease)) {
    gpus_[gpu.value].since_switch.took += now_ - lease.entering_since;
  }
  lease.phase = Phase::kApart;
  lease.backfill = false;
  changed_ = true;
}

void Turns::finish_entering(LeaseState& lease) {
  if (lease.phase != Phase::kEntering) return;
  const Slots gpus = turn_gpus(lease);
  for (const LeaseState* other : claimants(gpus, lease.terms.id)) {
    if (other->phase != Phase::kLeaving) continue;
    // What its predecessor takes to drain is not the cost of moving.
    if (!has_moved(lease)) lease.entering_since = now_;
    return;
  }
  // Also what it has asked for and not got: else a short turn is over before the room is made, every time.
  for (TenantId id : lease.tenants) {
    for (GpuSlot gpu : lease.gpus) {
      const Holding& h = memory_.at(id, gpu);
      if (!h.out().is_zero() || !h.coming.is_zero() || !h.leaving.is_zero()) return;
      if (!(h.unbacked + h.wired_unbacked).is_zero()) return;
    }
  }
  lease.phase = Phase::kHolding;
  lease.turn_since = now_;
  lease.waits_since.reset();
  record_switch(lease);
  changed_ = true;
}

void Turns::record_switch(LeaseState& lease) {
  const Duration took = now_ - lease.entering_since;
  if (measure_move(lease)) lease.cost.add(seconds(took));
  for (GpuSlot slot : turn_gpus(lease)) {
    GpuState& gpu = gpus_[slot.value];
    gpu.since_switch.took += took;
    if (gpu.last_holder == lease.terms.id) continue;
    ++gpu.counts.handovers;
    gpu.switches.push_back(
        {now_, gpu.last_holder, lease.terms.id, std::exchange(gpu.since_switch, {})});
    if (gpu.switches.size() > kSwitchesKept) gpu.switches.pop_front();
    gpu.last_holder = lease.terms.id;
  }
}

// Also for tenants that came while the lease was holding.
void Turns::open_resident(LeaseState& lease) {
  for (TenantId id : lease.tenants) {
    const TenantState& tenant = tenants_.at(id);
    if (tenant.gate_open || !tenant.reachable || tenant.dead) continue;
    const bool here = std::all_of(lease.gpus.begin(), lease.gpus.end(), [&](GpuSlot gpu) {
      const Holding& h = memory_.at(id, gpu);
      return h.out().is_zero() && h.coming.is_zero() && h.leaving.is_zero();
    });
    if (here) set_gate(id, GateOrder::kOpen);
  }
}

void Turns::close(LeaseState& lease) {
  lease.phase = Phase::kLeaving;
  lease.backfill = false;
  lease.reported = false;
  lease.closed_at = now_;
  lease.letting = {now_, settings_.drain_patience, {}};
  for (TenantId id : lease.tenants) {
    tenants_.at(id).lets = 0;
    if (tenants_.at(id).gate_open) set_gate(id, GateOrder::kClose);
  }
  changed_ = true;
}

void Turns::reopen(LeaseState& lease) {
  lease.phase = Phase::kHolding;
  lease.turn_since = now_;
  changed_ = true;
}

void Turns::stop_clock(LeaseState& lease) {
  if (!lease.clock.running()) return;
  lease.clock.stop(now_, lease.terms.weight);
  lease.held_last = now_;
  join_line(lease);
}

// A tenant that cannot answer is not waited for: its gate is shut, and its memory stays where it is.
void Turns::finish_leaving(LeaseState& lease) {
  if (lease.phase != Phase::kLeaving) return;
  const bool drained = std::all_of(lease.tenants.begin(), lease.tenants.end(), [&](TenantId id) {
    const TenantState& tenant = tenants_.at(id);
    return tenant.drained() || !tenant.reachable || tenant.dead;
  });
  if (drained) {
    for (TenantId id : lease.tenants) tenants_.at(id).undrained = !tenants_.at(id).drained();
    stop_clock(lease);
    lease.phase = Phase::kApart;
    changed_ = true;
  } else if (!lease.aside && !somebody_waits_for(lease)) {
    reopen(lease);
  }
}

// A kernel may wait for a launch that stands at the gate. One submission passes at a time, first of
// those whose GPU is drained: then it is not more of what has to drain. The same tenant goes on as
// long as it keeps draining (it catches up with the others); anything else has to stand still for
// a while, which grows, so that long kernels are not fed for ever.
void Turns::let_through(LeaseState& lease) {
  Letting& letting = lease.letting;
  TenantId best{};
  int best_rank = 0;
  for (TenantId id : lease.tenants) {
    const TenantState& t = tenants_.at(id);
    if (!t.reachable || t.dead) continue;
    if (!t.answered()) return;  // what it does with the last order is not known yet
    if (t.waiting == 0) continue;
    const int rank = t.drained() ? (id == letting.last ? 4 : 3) : t.ready > 0 ? 2 : 1;
    const bool fewer = rank == best_rank && t.lets < tenants_.at(best).lets;
    if (rank > best_rank || fewer) {
      best = id;
      best_rank = rank;
    }
  }
  if (best_rank == 0) return;
  const bool catching_up = best_rank == 4 || (best_rank == 2 && best == letting.last);
  if (!catching_up) {
    if (now_ < letting.since + letting.patience) return;
    letting.patience *= 4;
  }
  letting.since = now_;
  letting.last = best;
  ++tenants_.at(best).lets;
  set_gate(best, GateOrder::kLetOneThrough);
}

void Turns::watch_deadline(LeaseState& lease) {
  if (now_ < lease.closed_at + settings_.yield_deadline) return;
  if (!lease.reported)
    report(Trouble::kNotYielding, lease.terms.id, {}, settings_.stop_at_deadline);
  lease.reported = true;
  if (!settings_.stop_at_deadline && is_deadlocked(lease)) refuse_growth(lease);
}

// Another waits for memory that it has, as it does for the other's, and neither ends before it has it.
bool Turns::is_deadlocked(const LeaseState& lease) const {
  return std::any_of(lease.gpus.begin(), lease.gpus.end(), [&](GpuSlot gpu) {
    const auto is_other = [&](const auto& entry) {
      return entry.first != lease.terms.id && cannot_leave(entry.second, gpu);
    };
    return cannot_leave(lease, gpu) && std::any_of(leases_.begin(), leases_.end(), is_other);
  });
}

// Its program is told that it is out of memory, and can end what it is at.
void Turns::refuse_growth(LeaseState& lease) {
  for (TenantId id : lease.tenants) {
    for (const PendingGrow& grow : std::exchange(tenants_.at(id).growth, {})) {
      memory_.at(id, grow.gpu).withdraw(grow.bytes, grow.wired);
      const GpuUuid& gpu = memory_.uuid(grow.gpu);
      actions_.push_back(AnswerGrow{id, gpu, grow.seq, GrowAnswer::kRefusedCapacity, {}});
    }
  }
  changed_ = true;
}

}  // namespace gpurota::sched
