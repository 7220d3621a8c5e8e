#include "sched/turns.h"

#include <algorithm>
#include <utility>

namespace gpurota::sched {
namespace {

// What was in vain has mostly ended before it was told: looked at again sooner than what failed.
constexpr int kSoonerInVain = 20;

// A tenant that asks for more at once than threads that a program has is not served better.
constexpr std::size_t kMostGrowth = 4096;
// Each round moves at least one lease into its next phase; there are few phases.
constexpr int kMostRounds = 200;

}  // namespace

Turns::Turns(const Settings& settings) { set(settings); }

void Turns::set(const Settings& settings) {
  settings_ = settings;
  memory_.set_host_budget(settings.host_budget);
  memory_.set_piece(settings.piece);
  for (GpuState& gpu : gpus_) gpu.budget.set(settings.priority_share, settings.priority_burst);
}

Result<void> Turns::set_gpu(const GpuSettings& settings, bool anyway) {
  const auto known = memory_.slot_of(settings.uuid);
  if (known && !memory_.is_lost(*known) && !anyway) {
    // More is always better than what is, whatever does not fit already.
    const bool less = settings.capacity < memory_.capacity(*known);
    if (less && !memory_.would_fit(*known, settings.capacity)) {
      return fail(Code::kLimit, "the leases on this GPU do not fit " +
                                    to_string(settings.capacity) +
                                    ": the largest would not fit in GPU memory, or the others "
                                    "would not fit in host memory; end one of them first");
    }
    Residency after = memory_;
    after.set_capacity(*known, settings.capacity);
    if (settings.mode == TurnsMode::kOff && !after.deficit(*known).is_zero()) {
      return fail(Code::kLimit, "turns cannot be off: the leases on this GPU exceed it by " +
                                    to_string(after.deficit(*known)) + "; end one of them first");
    }
  }
  const GpuSlot slot = memory_.add_gpu(settings.uuid, settings.capacity);
  gpus_.resize(memory_.gpu_count());
  gpus_[slot.value].settings = settings;
  gpus_[slot.value].budget.set(settings_.priority_share, settings_.priority_burst);
  return {};
}

void Turns::set_outsiders(const GpuUuid& gpu, Bytes bytes) {
  if (const auto slot = memory_.slot_of(gpu)) memory_.set_outsiders(*slot, bytes);
}

Result<void> Turns::add_lease(const LeaseTerms& terms) {
  for (const LeaseTerms::Gpu& gpu : terms.gpus) {
    const auto slot = memory_.slot_of(gpu.uuid);
    if (!slot || memory_.is_lost(*slot))
      return fail(Code::kNotFound, "GPU " + gpu.uuid.value + " takes no swap leases");
    const Bytes most = memory_.capacity(*slot) - memory_.wired(*slot);
    if (gpu.limit > most) {
      return fail(Code::kLimit, "a swap lease can have at most " + to_string(most) +
                                    " there now: memory that cannot be moved takes " +
                                    to_string(memory_.wired(*slot)) + "; ask for less");
    }
  }
  GPUROTA_TRY(admit_oversize(terms));
  restore_lease(terms);
  return {};
}

void Turns::restore_lease(const LeaseTerms& terms) {
  LeaseState lease;
  lease.terms = terms;
  Bytes oversize;
  for (const LeaseTerms::Gpu& gpu : terms.gpus) {
    oversize += gpu.oversize;
    lease.gpus.push_back(memory_.add_lost_gpu(gpu.uuid));
  }
  gpus_.resize(memory_.gpu_count());
  memory_.set_oversize(terms.id, oversize);
  leases_.insert_or_assign(terms.id, std::move(lease));
}

void Turns::update_lease(const LeaseTerms& terms) {
  const auto found = leases_.find(terms.id);
  if (found == leases_.end()) return;
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
  now_ = now;
  actions_.clear();
  const auto found = leases_.find(lease);
  if (found == leases_.end()) return {};
  const std::set<TenantId> tenants = found->second.tenants;
  for (TenantId tenant : tenants) on(RemoveTenant{tenant});
  leases_.erase(lease);
  memory_.set_aside(lease, false);
  memory_.set_oversize(lease, {});
  settle();
  return std::move(actions_);
}

Actions Turns::handle(const Event& event, TimePoint now) {
  now_ = std::max(now_, now);
  actions_.clear();
  std::visit([this](const auto& e) { on(e); }, event);
  settle();
  return std::move(actions_);
}

LeaseState* Turns::lease_of(TenantId tenant) {
  const auto found = tenants_.find(tenant);
  return found == tenants_.end() ? nullptr : &leases_.at(found->second.lease);
}

void Turns::report(Trouble trouble, LeaseId lease, TenantId tenant, bool stop) {
  actions_.push_back(ReportTrouble{trouble, lease, tenant, stop, {}});
}

void Turns::on(const AddTenant& event) {
  const auto lease = leases_.find(event.lease);
  if (lease == leases_.end() || tenants_.contains(event.tenant)) return;
  // In one step: else others would be given its room in between.
  if (event.replaces.value != 0) on(RemoveTenant{event.replaces});
  TenantState& tenant = tenants_[event.tenant];
  tenant.lease = event.lease;
  tenant.gate_open = event.gate_open;
  tenant.busy = event.gate_open;
  lease->second.tenants.insert(event.tenant);
  memory_.add(event.tenant, event.lease);
  for (GpuSlot slot : lease->second.gpus) {
    TenantMemory said;
    for (const TenantMemory& m : event.memory) {
      if (m.gpu == memory_.uuid(slot)) said = m;
    }
    memory_.take_over(event.tenant, slot, said);
    if (!event.gate_open && !said.resident.is_zero()) tenant.undrained = true;
  }
  // A daemon that is gone let it run: it goes on unless somebody else has a better claim.
  if (event.gate_open && lease->second.phase == Phase::kApart) {
    lease->second.phase = Phase::kHolding;
    lease->second.turn_since = now_;
  }
  // It may not have heard that its lease's turn is over.
  if (event.gate_open && lease->second.phase != Phase::kHolding) {
    set_gate(event.tenant, GateOrder::kClose);
  }
}

void Turns::on(const TenantDied& event) {
  const auto found = tenants_.find(event.tenant);
  if (found == tenants_.end()) return;
  TenantState& tenant = found->second;
  tenant.dead = true;
  tenant.busy = false;
  tenant.waiting = tenant.ready = 0;
  tenant.growth.clear();
  tenant.asked_on_hold.clear();
  tenant.gate_open = false;
  tenant.seen_seq = tenant.gate_seq;
  memory_.mark_dead(event.tenant);
}

void Turns::on(const RemoveTenant& event) {
  LeaseState* lease = lease_of(event.tenant);
  if (lease == nullptr) return;
  lease->tenants.erase(event.tenant);
  memory_.remove(event.tenant);
  tenants_.erase(event.tenant);
  if (!lease->tenants.empty()) return;
  stop_clock(*lease);
  lease->phase = Phase::kApart;
  lease->idle_since.reset();
}

void Turns::on(const Reachable& event) {
  const auto found = tenants_.find(event.tenant);
  if (found == tenants_.end()) return;
  found->second.reachable = event.reachable;
}

void Turns::on(const TenantStatus& event) {
  const auto found = tenants_.find(event.tenant);
  if (found == tenants_.end() || found->second.dead) return;
  TenantState& tenant = found->second;
  tenant.seen_seq = event.gate_seq;
  tenant.waiting = event.waiting;
  tenant.ready = std::min(event.ready, event.waiting);
  // What it says of a gate that has been ordered otherwise since is about to be said again.
  if (!tenant.answered()) return;
  tenant.busy = event.busy;
  if (!tenant.busy || tenant.gate_open) tenant.undrained = false;
  // Its daemon went, or it was stopped, while it drained: its kernel may wait for a launch that stands at the gate.
  LeaseState& lease = leases_.at(tenant.lease);
  if (tenant.undrained && lease.phase == Phase::kApart) close(lease);
}

void Turns::on(const Grow& event) {
  auto slot = memory_.slot_of(event.gpu);
  if (slot && memory_.is_lost(*slot)) slot.reset();
  LeaseState* lease = lease_of(event.tenant);
  Bytes limit, oversize;
  if (slot && lease != nullptr) {
    for (const LeaseTerms::Gpu& gpu : lease->terms.gpus) {
      if (gpu.uuid != event.gpu) continue;
      limit = gpu.limit;
      oversize = gpu.oversize;
    }
  }
  const bool asks = slot && lease != nullptr && !tenants_[event.tenant].dead;
  if (asks && on_hold(now_) && tenants_[event.tenant].asked_on_hold.size() < kMostGrowth) {
    tenants_[event.tenant].asked_on_hold.push_back(event);
    return;
  }
  if (asks && event.hosted) return grow_hosted(event, *slot, oversize);
  GrowAnswer answer = GrowAnswer::kRefusedLimit;
  if (asks && tenants_[event.tenant].growth.size() < kMostGrowth) {
    answer = memory_.check_growth(event.tenant, *slot, event.bytes, event.wired, limit);
  }
  if (answer == GrowAnswer::kGranted) {
    Holding& held = memory_.at(event.tenant, *slot);
    held.admit(event.bytes, event.wired);
    const bool off = gpus_[slot->value].settings.mode == TurnsMode::kOff;
    if (!off || memory_.deficit(*slot).is_zero()) {
      tenants_[event.tenant].growth.push_back({*slot, event.seq, event.bytes, event.wired});
      return;
    }
    held.withdraw(event.bytes, event.wired);
    answer = GrowAnswer::kRefusedTurnsOff;
  }
  Bytes to_host;
  if (asks && !event.wired) {
    to_host = memory_.to_host(event.tenant, *slot, event.bytes, limit, oversize);
  }
  actions_.push_back(AnswerGrow{event.tenant, event.gpu, event.seq, answer, to_host});
}

// Everybody who was there is known by now.
void Turns::judge_what_was_asked_on_hold() {
  for (auto& [id, tenant] : tenants_) {
    for (const Grow& grow : std::exchange(tenant.asked_on_hold, {})) on(grow);
  }
}

void Turns::on(const Shrink& event) {
  const auto slot = memory_.slot_of(event.gpu);
  Holding* held = slot ? memory_.find(event.tenant, *slot).if_there() : nullptr;
  if (held == nullptr) return;
  const Bytes resident = std::min(event.resident, held->resident);
  const Bytes out = std::min(event.out, held->out());
  held->resident -= resident;
  held->movable -= resident + out;
  held->leaving = std::min(held->leaving, held->resident);
  held->wired -= event.wired;
  held->hosted -= event.hosted;
  if ((event.resident + event.out + event.wired + event.hosted).is_zero()) return;
  TenantState& tenant = tenants_.at(event.tenant);
  LeaseState& lease = leases_.at(tenant.lease);
  if (std::exchange(tenant.in_vain, false)) tenant.retry_at = now_;
  if (std::exchange(lease.in_vain, false)) lease.retry_at = now_;
}

void Turns::on(const Measured& event) {
  const auto slot = memory_.slot_of(event.gpu);
  Holding* held = slot ? memory_.find(event.tenant, *slot).if_there() : nullptr;
  if (held == nullptr || tenants_.at(event.tenant).dead) return;
  held->beside = event.beside;
  if (event.confirms) held->lingering = Bytes();
}

void Turns::on(const Evicted& event) {
  const auto slot = memory_.slot_of(event.gpu);
  Holding* held = slot ? memory_.find(event.tenant, *slot).if_there() : nullptr;
  if (held == nullptr) return;
  LeaseState& lease = *lease_of(event.tenant);
  const Bytes moved = std::min(event.bytes, held->resident);
  held->resident -= moved;
  if (event.doubted) held->lingering += moved;
  held->leaving -= event.bytes + event.returned;
  GpuState& gpu = gpus_[slot->value];
  gpu.counts.evicted += moved;
  for (Moved* sum : {&gpu.since_switch, &gpu.since_entering}) {
    sum->out += moved;
    sum->clean += std::min(event.clean, moved);
  }
  // It has less than it has said, and is about to say so: nor would it have more the same moment.
  TenantState& tenant = tenants_.at(event.tenant);
  tenant.in_vain =
      !event.failed && moved.is_zero() && !event.returned.is_zero() && !held->resident.is_zero();
  if (event.failed) tenant.retry_at = now_ + settings_.retry;
  if (tenant.in_vain) {
    tenant.retry_at = std::max(tenant.retry_at, now_ + settings_.retry / kSoonerInVain);
  }
  if (event.failed) report(Trouble::kMoveFailed, lease.terms.id, event.tenant);
}

void Turns::on(const Restored& event) {
  const auto slot = memory_.slot_of(event.gpu);
  Holding* held = slot ? memory_.find(event.tenant, *slot).if_there() : nullptr;
  if (held == nullptr) return;
  LeaseState& lease = *lease_of(event.tenant);
  const Bytes moved = std::min({event.bytes, held->coming, held->out()});
  held->resident += moved;
  held->coming -= event.bytes + event.returned;
  GpuState& gpu = gpus_[slot->value];
  gpu.counts.restored += moved;
  gpu.since_switch.in += moved;
  gpu.since_entering.in += moved;
  // It had room for any block, or for all that is out, and has not used it: nor would it the same moment. What is still
  // coming by another order is out, too. Others can have the turn meanwhile, and what of it is there.
  const Bytes enough = std::min(held->out(), settings_.piece);
  lease.in_vain = !event.failed && !enough.is_zero() && event.returned >= enough;
  if (!lease.in_vain && !event.failed) return;
  lease.retry_at = now_ + settings_.retry;
  if (event.failed) report(Trouble::kMoveFailed, lease.terms.id, event.tenant);
}

void Turns::settle() {
  if (now_ < held_until_) return;
  judge_what_was_asked_on_hold();
  for (GpuState& gpu : gpus_) gpu.budget.advance(now_, gpu.draining);
  for (int i = 0; i < kMostRounds; ++i) {
    changed_ = false;
    step();
    if (!changed_) break;
  }
  look_at_wishes();  // a growth may have been answered: its lease is idle from now, not from the next event
}

void Turns::step() {
  leave_aside();
  look_at_contention();
  look_at_spent_budgets();
  look_at_wishes();
  for (auto& [id, lease] : leases_) finish_leaving(lease);
  resolve_conflicts();
  choose();
  move();
  for (auto& [id, lease] : leases_) {
    finish_entering(lease);
    if (lease.phase == Phase::kHolding) open_resident(lease);
  }
  if (changed_) return;
  renew_quanta();
  look_at_budgets();
  for (auto& [id, lease] : leases_) {
    const Wait obstacle = waits_for_memory(lease) ? hindrance(lease) : Wait::kNothing;
    watch_room(lease, obstacle);
    watch_stopped(lease, obstacle);
    if (lease.phase != Phase::kLeaving) continue;
    let_through(lease);
    watch_deadline(lease);
  }
}

}  // namespace gpurota::sched
