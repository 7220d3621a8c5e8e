#include "sched/turn_events.h"

#include "sched/residency_rules.h"

#include <algorithm>
#include <utility>

namespace gpurota::sched {
namespace {

// What was in vain has mostly ended before it was told: looked at again sooner than what failed.
constexpr int kSoonerInVain = 20;

// A tenant that asks for more at once than threads that a program has is not served better.
constexpr std::size_t kMostGrowth = 4096;

}  // namespace

void TurnEvents::on(const AddTenant& event) {
  const auto lease = table_.leases.find(event.lease);
  if (lease == table_.leases.end() || table_.tenants.contains(event.tenant)) return;
  std::map<GpuSlot, MoveDebt> owed;
  bool open = event.gate_open;
  if (const auto before = table_.tenants.find(event.replaces); before != table_.tenants.end()) {
    TenantState& was = before->second;
    owed = std::move(was.moves);
    // Shut by an order that was carried out: it cannot be open again.
    open = open && (was.gate_open || !was.answered());
  }
  // In one step: else others would be given its room in between.
  if (event.replaces.value != 0) on(RemoveTenant{event.replaces});
  TenantState& tenant = table_.tenants[event.tenant];
  tenant.moves = std::move(owed);
  tenant.lease = event.lease;
  tenant.gate_open = open;
  tenant.busy = open;
  lease->second.tenants.insert(event.tenant);
  table_.memory.add(event.tenant, event.lease);
  for (GpuSlot slot : lease->second.gpus) {
    TenantMemory said;
    for (const TenantMemory& m : event.memory) {
      if (m.gpu == table_.memory.uuid(slot)) said = m;
    }
    table_.memory.take_over(event.tenant, slot, said);
    if (!open && !said.resident.is_zero()) tenant.undrained = true;
  }
  // A daemon that is gone let it run: it goes on unless somebody else has a better claim.
  if (open && lease->second.phase == Phase::kApart) {
    lease->second.phase = Phase::kHolding;
    lease->second.turn_since = table_.now;
  }
  // It may not have heard that its lease's turn is over.
  if (open && lease->second.phase != Phase::kHolding) {
    phases_.set_gate(event.tenant, GateOrder::kClose);
  }
}

void TurnEvents::on(const TenantDied& event) {
  const auto found = table_.tenants.find(event.tenant);
  if (found == table_.tenants.end()) return;
  TenantState& tenant = found->second;
  tenant.dead = true;
  tenant.busy = false;
  tenant.waiting = tenant.ready = 0;
  tenant.growth.clear();
  tenant.asked_on_hold.clear();
  tenant.gate_open = false;
  tenant.seen_seq = tenant.gate_seq;
  table_.memory.mark_dead(event.tenant);
}

void TurnEvents::on(const RemoveTenant& event) {
  LeaseState* lease = table_.lease_of(event.tenant);
  if (lease == nullptr) return;
  lease->tenants.erase(event.tenant);
  table_.memory.remove(event.tenant);
  table_.tenants.erase(event.tenant);
  if (!lease->tenants.empty()) return;
  clocks_.stop_clock(*lease);
  lease->phase = Phase::kApart;
  lease->idle_since.reset();
}

void TurnEvents::on(const Reachable& event) {
  const auto found = table_.tenants.find(event.tenant);
  if (found == table_.tenants.end()) return;
  found->second.reachable = event.reachable;
}

void TurnEvents::on(const TenantStatus& event) {
  const auto found = table_.tenants.find(event.tenant);
  if (found == table_.tenants.end() || found->second.dead) return;
  TenantState& tenant = found->second;
  tenant.seen_seq = event.gate_seq;
  tenant.waiting = event.waiting;
  tenant.ready = std::min(event.ready, event.waiting);
  // What it says of a gate that has been ordered otherwise since is about to be said again.
  if (!tenant.answered()) return;
  tenant.busy = event.busy;
  if (!tenant.busy || tenant.gate_open) tenant.undrained = false;
  // Its daemon went, or it was stopped, while it drained: its kernel may wait for a launch that stands at the gate.
  LeaseState& lease = table_.leases.at(tenant.lease);
  if (tenant.undrained && lease.phase == Phase::kApart) phases_.close(lease);
}

void TurnEvents::on(const Grow& event) {
  auto slot = table_.memory.slot_of(event.gpu);
  if (slot && table_.memory.is_lost(*slot)) slot.reset();
  LeaseState* lease = table_.lease_of(event.tenant);
  Bytes limit, oversize;
  if (slot && lease != nullptr) {
    for (const LeaseTerms::Gpu& gpu : lease->terms.gpus) {
      if (gpu.uuid != event.gpu) continue;
      limit = gpu.limit;
      oversize = gpu.oversize;
    }
  }
  const bool asks = slot && lease != nullptr && !table_.tenants[event.tenant].dead;
  if (asks && table_.on_hold() && table_.tenants[event.tenant].asked_on_hold.size() < kMostGrowth) {
    table_.tenants[event.tenant].asked_on_hold.push_back(event);
    return;
  }
  if (asks && event.hosted) return grow_hosted(event, *slot, oversize);
  GrowAnswer answer = GrowAnswer::kRefusedLimit;
  if (asks && table_.tenants[event.tenant].growth.size() < kMostGrowth) {
    answer = ResidencyRules(table_.memory)
                 .check_growth(event.tenant, *slot, event.bytes, event.wired, limit);
  }
  if (answer == GrowAnswer::kGranted) {
    Holding& held = table_.memory.at(event.tenant, *slot);
    held.admit(event.bytes, event.wired);
    const bool off = table_.gpus[slot->value].settings.mode == TurnsMode::kOff;
    if (!off || table_.memory.deficit(*slot).is_zero()) {
      table_.tenants[event.tenant].growth.push_back({*slot, event.seq, event.bytes, event.wired});
      return;
    }
    held.withdraw(event.bytes, event.wired);
    answer = GrowAnswer::kRefusedTurnsOff;
  }
  Bytes to_host;
  if (asks && !event.wired) {
    to_host =
        ResidencyRules(table_.memory).to_host(event.tenant, *slot, event.bytes, limit, oversize);
  }
  table_.actions.push_back(AnswerGrow{event.tenant, event.gpu, event.seq, answer, to_host});
}

void TurnEvents::on(const Shrink& event) {
  const auto slot = table_.memory.slot_of(event.gpu);
  Holding* held = slot ? table_.memory.find(event.tenant, *slot).if_there() : nullptr;
  if (held == nullptr) return;
  const Bytes resident = std::min(event.resident, held->resident);
  const Bytes out = std::min(event.out, held->out());
  held->resident -= resident;
  held->movable -= resident + out;
  held->leaving = std::min(held->leaving, held->resident);
  held->wired -= event.wired;
  held->hosted -= event.hosted;
  if ((event.resident + event.out + event.wired + event.hosted).is_zero()) return;
  TenantState& tenant = table_.tenants.at(event.tenant);
  LeaseState& lease = table_.leases.at(tenant.lease);
  if (std::exchange(tenant.in_vain, false)) tenant.retry_at = table_.now;
  if (std::exchange(lease.in_vain, false)) lease.retry_at = table_.now;
}

void TurnEvents::on(const Measured& event) {
  const auto slot = table_.memory.slot_of(event.gpu);
  Holding* held = slot ? table_.memory.find(event.tenant, *slot).if_there() : nullptr;
  if (held == nullptr || table_.tenants.at(event.tenant).dead) return;
  held->beside = event.beside;
  if (event.confirms) held->lingering = Bytes();
}

void TurnEvents::on(const Evicted& event) {
  const auto slot = table_.memory.slot_of(event.gpu);
  Holding* held = slot ? table_.memory.find(event.tenant, *slot).if_there() : nullptr;
  if (held == nullptr) return;
  LeaseState& lease = *table_.lease_of(event.tenant);
  const Bytes moved = std::min(event.bytes, held->resident);
  held->resident -= moved;
  if (event.doubted) held->lingering += moved;
  held->leaving -= event.bytes + event.returned;
  settle_order(event, *slot, moved, held->leaving.is_zero());
  GpuState& gpu = table_.gpus[slot->value];
  gpu.counts.evicted += moved;
  for (Moved* sum : {&gpu.since_switch, &gpu.since_entering}) {
    sum->out += moved;
    sum->clean += std::min(event.clean, moved);
  }
  // It has less than it has said, and is about to say so: nor would it have more the same moment.
  TenantState& tenant = table_.tenants.at(event.tenant);
  tenant.in_vain =
      !event.failed && moved.is_zero() && !event.returned.is_zero() && !held->resident.is_zero();
  if (event.failed) tenant.retry_at = table_.now + table_.settings.retry;
  if (tenant.in_vain) {
    tenant.retry_at = std::max(tenant.retry_at, table_.now + table_.settings.retry / kSoonerInVain);
  }
  if (event.failed) table_.report(Trouble::kMoveFailed, lease.terms.id, event.tenant);
}

// A machine that swaps moves 16 MiB in a second; who moves as much owes nothing.
void TurnEvents::pay(MoveDebt& debt, Bytes moved) {
  const auto paid = std::chrono::milliseconds(moved.count() * 1000 / mib(16).count());
  debt.owed = std::max<Duration>(debt.owed - paid, Duration::zero());
}

void TurnEvents::settle_order(const Evicted& event, GpuSlot gpu, Bytes moved, bool ended) {
  MoveDebt& debt = table_.tenants.at(event.tenant).moves[gpu];
  pay(debt, moved);
  debt.partly = debt.partly || event.failed || !event.returned.is_zero();
  if (!ended) return;
  if (debt.partly) {
    debt.given_back = table_.awake;
  } else {
    debt = {};
  }
}

void TurnEvents::on(const Restored& event) {
  const auto slot = table_.memory.slot_of(event.gpu);
  Holding* held = slot ? table_.memory.find(event.tenant, *slot).if_there() : nullptr;
  if (held == nullptr) return;
  LeaseState& lease = *table_.lease_of(event.tenant);
  const Bytes moved = std::min({event.bytes, held->coming, held->out()});
  held->resident += moved;
  held->coming -= event.bytes + event.returned;
  pay(table_.tenants.at(event.tenant).moves[*slot], moved);
  GpuState& gpu = table_.gpus[slot->value];
  gpu.counts.restored += moved;
  gpu.since_switch.in += moved;
  gpu.since_entering.in += moved;
  // It had room for any block, or for all that is out, and has not used it: nor would it the same moment. What is still
  // coming by another order is out, too. Others can have the turn meanwhile, and what of it is there.
  const Bytes enough = std::min(held->out(), table_.settings.piece);
  lease.in_vain = !event.failed && !enough.is_zero() && event.returned >= enough;
  if (!lease.in_vain && !event.failed) return;
  lease.retry_at = table_.now + table_.settings.retry;
  if (event.failed) table_.report(Trouble::kMoveFailed, lease.terms.id, event.tenant);
}

void TurnEvents::judge_what_was_asked_on_hold() {
  for (auto& [id, tenant] : table_.tenants) {
    for (const Grow& grow : std::exchange(tenant.asked_on_hold, {})) on(grow);
  }
}

void TurnEvents::grow_hosted(const Grow& event, GpuSlot gpu, Bytes most) {
  const GrowAnswer answer =
      ResidencyRules(table_.memory).check_hosted(event.tenant, gpu, event.bytes, most);
  if (answer == GrowAnswer::kGranted) table_.memory.at(event.tenant, gpu).hosted += event.bytes;
  table_.actions.push_back(AnswerGrow{event.tenant, event.gpu, event.seq, answer});
}

}  // namespace gpurota::sched
