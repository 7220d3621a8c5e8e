// What moves: room is made by those whose turn is furthest away, and given to those who have theirs.
#include "sched/turns.h"

#include <algorithm>

namespace gpurota::sched {
namespace {

// No more than `bytes`.
Bytes in_pieces(Bytes bytes, Bytes piece) {
  const std::uint64_t size = std::max<std::uint64_t>(piece.count(), 1);
  return Bytes(bytes.count() / size * size);
}

// No less.
Bytes whole_pieces(Bytes bytes, Bytes piece) { return in_pieces(bytes + piece - Bytes(1), piece); }

}  // namespace

// A thread that waits for memory may be what another's kernel waits for: a lease that is leaving gets its
// memory before anything else moves in.
void Turns::move() {
  for (std::uint32_t i = 0; i < gpus_.size(); ++i) {
    const GpuSlot gpu{i};
    if (memory_.is_lost(gpu)) continue;
    bool leaving_first = false;
    for (auto& [id, lease] : leases_) {
      if (lease.phase != Phase::kLeaving) continue;
      for (TenantId tenant : lease.tenants) serve_growth(lease, tenant, gpu);
      const Holding h = memory_.of_lease(id, gpu);
      leaving_first = leaving_first || !(h.unbacked + h.wired_unbacked).is_zero();
    }
    for (auto& [id, lease] : leases_) {
      const bool has_turn = lease.phase == Phase::kEntering || lease.phase == Phase::kHolding;
      const bool may = !leaving_first || lease.phase == Phase::kHolding;
      if (has_turn && may && lease.retry_at <= now_) give_room(lease, gpu);
    }
    evict_aside(gpu);
    make_room(gpu, lacking(gpu), leaving_first);
    look_at_excess(gpu);
  }
}

// A context that takes more than was reserved for it is counted before others have made room: that is soon over.
void Turns::look_at_excess(GpuSlot gpu) {
  constexpr Duration kLasts = std::chrono::seconds(2);
  GpuState& state = gpus_[gpu.value];
  if (memory_.used(gpu) <= memory_.capacity(gpu)) {
    state.over_since.reset();
    state.over_reported = false;
    return;
  }
  if (!state.over_since) state.over_since = now_;
  if (state.over_reported || now_ < *state.over_since + kLasts) return;
  state.over_reported = true;
  actions_.push_back(ReportTrouble{Trouble::kOverCapacity, {}, {}, false, memory_.uuid(gpu)});
}

// What those with a turn need on this GPU beyond what is free.
Bytes Turns::lacking(GpuSlot gpu) const {
  Bytes needed;
  for (const auto& [id, lease] : leases_) {
    if (lease.phase == Phase::kApart) continue;
    const Holding h = memory_.of_lease(id, gpu);
    needed += h.unbacked + h.wired_unbacked;
    if (lease.phase != Phase::kLeaving) needed += h.missing();
  }
  return needed + memory_.used(gpu) - memory_.capacity(gpu);
}

// Blocks of up to a piece come back whole, and room that none fits in is given back. So room is given in whole pieces, and
// less only as all that is missing, when nothing is coming: else what comes may leave a block over that is larger. Who still
// moves out by an earlier order does that first, and would only keep the room from others.
void Turns::give_room(LeaseState& lease, GpuSlot gpu) {
  if (std::find(lease.gpus.begin(), lease.gpus.end(), gpu) == lease.gpus.end()) return;
  for (TenantId id : lease.tenants) {
    if (!answers(tenants_.at(id))) continue;
    Holding& held = memory_.at(id, gpu);
    const Bytes room = std::min(memory_.free(gpu), held.missing());
    const bool all = room == held.missing();
    const bool usable = room >= settings_.piece || (all && held.coming.is_zero());
    if (usable && !room.is_zero() && held.leaving.is_zero()) {
      const Bytes given = all ? room : in_pieces(room, settings_.piece);
      held.coming += given;
      actions_.push_back(Restore{id, memory_.uuid(gpu), given});
    }
    serve_growth(lease, id, gpu);
  }
}

void Turns::serve_growth(LeaseState& lease, TenantId id, GpuSlot gpu) {
  TenantState& tenant = tenants_.at(id);
  if (tenant.growth.empty() || !answers(tenant)) return;
  if (!memory_.of_lease(lease.terms.id, gpu).missing().is_zero()) return;
  Holding& held = memory_.at(id, gpu);
  for (auto it = tenant.growth.begin(); it != tenant.growth.end();) {
    if (it->gpu != gpu) {
      ++it;
      continue;
    }
    if (it->bytes > memory_.free(gpu)) return;
    (it->wired ? held.wired_unbacked : held.unbacked) -= it->bytes;
    (it->wired ? held.wired : held.resident) += it->bytes;
    actions_.push_back(AnswerGrow{id, memory_.uuid(gpu), it->seq, GrowAnswer::kGranted});
    it = tenant.growth.erase(it);
  }
}

// Who is above a soft limit first, the lowest priority before others. Then those whose turn is furthest away: who wants none, the longest idle first; then who waits, the
// last in order first; and who is entering, where a lease that is leaving needs its room.
std::vector<TenantId> Turns::victims(GpuSlot gpu, bool entering_too) const {
  std::vector<const LeaseState*> leases;
  for (const auto& [id, lease] : leases_) {
    const bool holds = std::find(lease.gpus.begin(), lease.gpus.end(), gpu) != lease.gpus.end();
    const bool gives =
        lease.phase == Phase::kApart || (entering_too && lease.phase == Phase::kEntering);
    if (holds && gives) leases.push_back(&lease);
  }
  std::sort(leases.begin(), leases.end(), [this](const LeaseState* a, const LeaseState* b) {
    if (a->phase != b->phase) return a->phase == Phase::kApart;
    if (a->above_soft != b->above_soft) return a->above_soft;
    const bool lower = a->terms.priority < b->terms.priority;
    if (a->above_soft && a->terms.priority != b->terms.priority) return lower;
    if (wants(*a) != wants(*b)) return !wants(*a);
    if (!wants(*a) && a->held_last != b->held_last) return a->held_last < b->held_last;
    return goes_before(*b, *a);
  });
  std::vector<TenantId> tenants;
  for (const LeaseState* lease : leases) {
    for (TenantId id : lease->tenants) {
      if (can_give(tenants_.at(id)) && tenants_.at(id).drained()) tenants.push_back(id);
    }
  }
  return tenants;
}

void Turns::make_room(GpuSlot gpu, Bytes lacking, bool entering_too) {
  for (const auto& [id, tenant] : tenants_) lacking -= on_its_way_out(tenant, memory_.at(id, gpu));
  if (lacking.is_zero()) return;
  for (TenantId id : victims(gpu, entering_too)) {
    const Holding& held = memory_.at(id, gpu);
    if (!held.leaving.is_zero() && held.leaving < held.resident) return;  // more of it after that
    lacking -= order_out(id, gpu, whole_pieces(lacking, settings_.piece));
    if (lacking.is_zero()) return;
  }
}

// So much of what it has, as far as there is host memory for it. How much was ordered. One order after the other: it goes
// beyond each by up to a block, and what is left of several together would not be known.
Bytes Turns::order_out(TenantId id, GpuSlot gpu, Bytes bytes) {
  Holding& held = memory_.at(id, gpu);
  if (!held.leaving.is_zero()) return {};
  bytes = std::min(bytes, held.resident);
  const Bytes beyond = std::min(held.resident - bytes, settings_.piece);
  if (bytes + beyond > memory_.host_for_moves()) bytes = std::min(bytes, may_go_out());
  if (bytes.is_zero()) return {};
  ++gpus_[gpu.value].counts.evictions;
  held.leaving = bytes;
  actions_.push_back(Evict{id, memory_.uuid(gpu), bytes});
  return bytes;
}

}  // namespace gpurota::sched
