#include "sched/turn_moves.h"

#include "sched/host_needs.h"

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
void TurnMoves::move() {
  for (std::uint32_t i = 0; i < table_.gpus.size(); ++i) {
    const GpuSlot gpu{i};
    if (table_.memory.is_lost(gpu)) continue;
    bool leaving_first = false;
    for (auto& [id, lease] : table_.leases) {
      if (lease.phase != Phase::kLeaving) continue;
      for (TenantId tenant : lease.tenants) serve_growth(lease, tenant, gpu);
      const Holding h = table_.memory.of_lease(id, gpu);
      leaving_first = leaving_first || !(h.unbacked + h.wired_unbacked).is_zero();
    }
    for (auto& [id, lease] : table_.leases) {
      const bool has_turn = lease.phase == Phase::kEntering || lease.phase == Phase::kHolding;
      const bool may = !leaving_first || lease.phase == Phase::kHolding;
      if (has_turn && may && lease.retry_at <= table_.now) give_room(lease, gpu);
    }
    evict_aside(gpu);
    make_room(gpu, lacking(gpu), leaving_first);
  }
}

Bytes TurnMoves::lacking(GpuSlot gpu) const {
  Bytes needed;
  for (const auto& [id, lease] : table_.leases) {
    if (lease.phase == Phase::kApart) continue;
    const Holding h = table_.memory.of_lease(id, gpu);
    needed += h.unbacked + h.wired_unbacked;
    if (lease.phase != Phase::kLeaving) needed += h.missing();
  }
  return needed + table_.memory.used(gpu) - table_.memory.capacity(gpu);
}

// Blocks of up to a piece come back whole, and room that none fits in is given back. So room is given in whole pieces, and
// less only as all that is missing, when nothing is coming: else what comes may leave a block over that is larger. Who still
// moves out by an earlier order does that first, and would only keep the room from others.
void TurnMoves::give_room(LeaseState& lease, GpuSlot gpu) {
  if (std::find(lease.gpus.begin(), lease.gpus.end(), gpu) == lease.gpus.end()) return;
  for (TenantId id : lease.tenants) {
    if (!table_.tenants.at(id).can_answer()) continue;
    Holding& held = table_.memory.at(id, gpu);
    const Bytes room = std::min(table_.memory.free(gpu), held.missing());
    const bool all = room == held.missing();
    const bool usable = room >= table_.settings.piece || (all && held.coming.is_zero());
    if (usable && !room.is_zero() && held.leaving.is_zero()) {
      const Bytes given = all ? room : in_pieces(room, table_.settings.piece);
      held.coming += given;
      table_.actions.push_back(Restore{id, table_.memory.uuid(gpu), given});
    }
    serve_growth(lease, id, gpu);
  }
}

void TurnMoves::serve_growth(LeaseState& lease, TenantId id, GpuSlot gpu) {
  TenantState& tenant = table_.tenants.at(id);
  if (tenant.growth.empty() || !tenant.can_answer()) return;
  if (!table_.memory.of_lease(lease.terms.id, gpu).missing().is_zero()) return;
  Holding& held = table_.memory.at(id, gpu);
  for (auto it = tenant.growth.begin(); it != tenant.growth.end();) {
    if (it->gpu != gpu) {
      ++it;
      continue;
    }
    if (it->bytes > table_.memory.free(gpu)) return;
    (it->wired ? held.wired_unbacked : held.unbacked) -= it->bytes;
    (it->wired ? held.wired : held.resident) += it->bytes;
    table_.actions.push_back(
        AnswerGrow{id, table_.memory.uuid(gpu), it->seq, GrowAnswer::kGranted});
    it = tenant.growth.erase(it);
  }
}

// Who is above a soft limit first, the lowest priority before others. Then those whose turn is furthest away: who wants none, the longest idle first; then who waits, the
// last in order first; and who is entering, where a lease that is leaving needs its room.
std::vector<TenantId> TurnMoves::victims(GpuSlot gpu, bool entering_too) const {
  std::vector<const LeaseState*> leases;
  for (const auto& [id, lease] : table_.leases) {
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
    if (table_.wants(*a) != table_.wants(*b)) return !table_.wants(*a);
    if (!table_.wants(*a) && a->held_last != b->held_last) return a->held_last < b->held_last;
    return order_.goes_before(*b, *a);
  });
  std::vector<TenantId> tenants;
  for (const LeaseState* lease : leases) {
    for (TenantId id : lease->tenants) {
      if (table_.can_give(table_.tenants.at(id)) && table_.tenants.at(id).drained())
        tenants.push_back(id);
    }
  }
  return tenants;
}

void TurnMoves::make_room(GpuSlot gpu, Bytes lacking, bool entering_too) {
  for (const auto& [id, tenant] : table_.tenants)
    lacking -= on_its_way_out(tenant, table_.memory.at(id, gpu));
  if (lacking.is_zero()) return;
  for (TenantId id : victims(gpu, entering_too)) {
    const Holding& held = table_.memory.at(id, gpu);
    if (!held.leaving.is_zero() && held.leaving < held.resident) return;  // more of it after that
    lacking -= order_out(id, gpu, whole_pieces(lacking, table_.settings.piece));
    if (lacking.is_zero()) return;
  }
}

// So much of what it has, as far as there is host memory for it. How much was ordered. One order after the other: it goes
// beyond each by up to a block, and what is left of several together would not be known.
Bytes TurnMoves::order_out(TenantId id, GpuSlot gpu, Bytes bytes) {
  Holding& held = table_.memory.at(id, gpu);
  if (!held.leaving.is_zero()) return {};
  bytes = std::min(bytes, held.resident);
  const Bytes beyond = std::min(held.resident - bytes, table_.settings.piece);
  if (bytes + beyond > HostNeeds(table_.memory).left_for_moves())
    bytes = std::min(bytes, table_.may_go_out());
  if (bytes.is_zero()) return {};
  ++table_.gpus[gpu.value].counts.evictions;
  held.leaving = bytes;
  begin_order(id, gpu);
  table_.actions.push_back(Evict{id, table_.memory.uuid(gpu), bytes});
  return bytes;
}

// Between an order that was given back and the next nothing is owed by the clock; but who gives
// back one after the other owes the time between them, too, as long as that is not a turn of its
// own.
void TurnMoves::begin_order(TenantId id, GpuSlot gpu) {
  constexpr Duration kMostBetween = std::chrono::minutes(1);
  MoveDebt& debt = table_.tenants.at(id).moves[gpu];
  debt.partly = false;
  if (debt.given_back) debt.owed += std::min(table_.awake - *debt.given_back, kMostBetween);
  debt.given_back.reset();
}

void TurnMoves::evict_aside(GpuSlot gpu) {
  for (auto& [id, lease] : table_.leases) {
    const bool here = std::find(lease.gpus.begin(), lease.gpus.end(), gpu) != lease.gpus.end();
    if (!lease.aside || !here || lease.phase != Phase::kApart) continue;
    for (const TenantId tenant : lease.tenants) {
      if (!table_.can_give(table_.tenants.at(tenant)) || !table_.tenants.at(tenant).drained())
        continue;
      order_out(tenant, gpu, table_.memory.at(tenant, gpu).resident);
    }
  }
}

}  // namespace gpurota::sched
