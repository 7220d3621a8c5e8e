#include "sched/turn_act.h"

#include "sched/host_needs.h"
#include "sched/residency_rules.h"
#include "sched/seconds.h"
#include "sched/turn_decide.h"

#include <algorithm>
#include <utility>

namespace gpurota::sched {

// Time: when turns begin on a GPU, how much time each lease has had, and the budgets of priorities.

namespace {

// All leases that have run on this GPU begin with equal clocks. A lease whose clock is already
// running, for another of its GPUs, keeps its clock; otherwise the lease would move back in the
// order whenever turns begin on this GPU.
void begin_contention(TurnTable& table, GpuSlot gpu) {
  table.gpus[gpu.value].contended = true;
  table.changed = true;
  double most = 0;
  for (const auto& [id, lease] : table.leases) {
    if (contains(lease.gpus, gpu))
      most = std::max(most, lease.clock.read(table.now, lease.terms.weight));
  }
  for (auto& [id, lease] : table.leases) {
    const bool ran = lease.phase != Phase::kApart && !lease.clock.running();
    if (ran && contains(lease.gpus, gpu)) lease.clock.catch_up(most);
  }
}

// The least time on the clocks of the leases that wait or have the turn. The holder counts even if
// it wants nothing at this moment.
std::optional<double> least_served(const TurnTable& table, const LeaseState& besides) {
  std::optional<double> least;
  for (const auto& [id, other] : table.leases) {
    const bool counts =
        other.wanted || other.phase == Phase::kEntering || other.phase == Phase::kHolding;
    if (id == besides.terms.id || !counts || !table.conflict(besides, other)) continue;
    const double value = other.clock.read(table.now, other.terms.weight);
    least = least ? std::min(*least, value) : value;
  }
  return least;
}

// A lease that begins to wait brings no credit, and no debt beyond a window: its debt may come from
// time in which nobody else could use the GPU.
void join_line(TurnTable& table, LeaseState& lease) {
  constexpr double kWindow = 4;
  const std::optional<double> least = least_served(table, lease);
  if (!least) return;
  lease.clock.catch_up(*least);
  lease.clock.hold_back(*least + kWindow * seconds(quantum(table, lease)));
}

void stop_clock(TurnTable& table, LeaseState& lease) {
  if (!lease.clock.running()) return;
  lease.clock.stop(table.now, lease.terms.weight);
  lease.held_last = table.now;
  join_line(table, lease);
}

// The clock of a lease runs while it holds its turn, and then until its work has drained.
void keep_clocks(TurnTable& table) {
  for (auto& [id, lease] : table.leases) {
    const bool has_turn = lease.phase == Phase::kHolding && !table.turn_gpus(lease).empty();
    if (has_turn && !lease.clock.running()) lease.clock.start(table.now);
    if (!has_turn && lease.phase != Phase::kLeaving) stop_clock(table, lease);
  }
}

// A tenant counts as busy until it has answered an order. A tenant that is busy only because of an
// unanswered order may have no work, so the pause of its lease continues meanwhile.
void keep_pauses(TurnTable& table, LeaseState& lease) {
  bool working = false;
  bool unknown = false;
  for (TenantId id : lease.tenants) {
    const TenantState& tenant = table.tenants.at(id);
    working = working || tenant.asks() || (tenant.busy && tenant.answered());
    unknown = unknown || !tenant.answered();
  }
  if (working && lease.idle_since) {
    lease.pauses.add(table.now - *lease.idle_since);
    lease.idle_since.reset();
  }
  if (!working && !unknown && !lease.idle_since) lease.idle_since = table.now;
}

}  // namespace

// Turns begin at once, and end only when all memory has fitted for a while. Otherwise a program
// that allocates and frees near the capacity would close and open everybody's gates each time.
void update_contention(TurnTable& table) {
  for (std::uint32_t i = 0; i < table.gpus.size(); ++i) {
    GpuState& gpu = table.gpus[i];
    const GpuSlot slot{i};
    const bool forced = gpu.settings.mode == TurnsMode::kOn && is_shared(table.memory, slot);
    if (forced || !table.memory.deficit(slot).is_zero()) {
      gpu.fits_since.reset();
      if (!gpu.contended) begin_contention(table, slot);
    } else if (gpu.contended) {
      if (!gpu.fits_since) gpu.fits_since = table.now;
      if (table.now < *gpu.fits_since + table.settings.calm) continue;
      gpu.contended = false;
      gpu.last_holder = {};
      table.changed = true;
    }
  }
  keep_clocks(table);
}

void update_wishes(TurnTable& table) {
  for (auto& [id, lease] : table.leases) {
    keep_pauses(table, lease);
    const bool wishes = table.wants(lease);
    const bool takes_turns = !table.turn_gpus(lease).empty();
    const bool comes_back = wishes && !lease.wanted && lease.phase == Phase::kApart;
    if (comes_back || (takes_turns && !lease.takes_turns)) join_line(table, lease);
    lease.takes_turns = takes_turns;
    lease.above_soft = is_above_soft(table, lease);
    lease.wanted = wishes;
    if (!wishes || lease.phase != Phase::kApart) {
      lease.waits_since.reset();
    } else if (!lease.waits_since) {
      lease.waits_since = table.now;
    }
  }
}

// A budget drains while a holder keeps a lease of lower priority waiting, and until that lease has
// its turn back. Otherwise a lease that comes and goes faster than memory moves would hold the
// others back for ever.
void update_budgets(TurnTable& table) {
  for (std::uint32_t i = 0; i < table.gpus.size(); ++i) {
    const GpuSlot gpu{i};
    const std::vector<LeaseState*> holders = table.claimants({gpu}, {});
    const auto last = table.leases.find(table.gpus[i].last_holder);
    table.gpus[i].draining =
        std::any_of(table.leases.begin(), table.leases.end(), [&](const auto& entry) {
          const LeaseState& lease = entry.second;
          const auto is_above = [&](const LeaseState* other) { return rank(lease) < rank(*other); };
          if (!lease.wanted || !contains(table.turn_gpus(lease), gpu)) return false;
          if (lease.phase == Phase::kEntering)
            return last != table.leases.end() && is_above(&last->second);
          return lease.phase == Phase::kApart &&
                 std::any_of(holders.begin(), holders.end(), is_above);
        });
  }
}

// A lease of several GPUs needs all of them at the same time. While the budget of one of these GPUs
// is spent, priorities do not count on the lease's other GPUs either. Otherwise the lease would
// wait until all budgets happen to be spent at the same time.
void update_spent_budgets(TurnTable& table) {
  for (GpuState& gpu : table.gpus) gpu.spent = gpu.budget.spent();
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& [id, lease] : table.leases) {
      const Slots gpus = table.turn_gpus(lease);
      const auto is_spent = [&](GpuSlot g) { return table.gpus[g.value].spent; };
      const bool any = std::any_of(gpus.begin(), gpus.end(), is_spent);
      if (!any || std::all_of(gpus.begin(), gpus.end(), is_spent)) continue;
      for (GpuSlot g : gpus) table.gpus[g.value].spent = true;
      changed = true;
    }
  }
}

// Phase changes of a lease: gates, draining, the time of a switch.

namespace {

constexpr std::size_t kSwitchesKept = 16;

void set_gate(TurnTable& table, TenantId id, GateOrder order) {
  TenantState& tenant = table.tenants.at(id);
  ++tenant.gate_seq;
  if (order != GateOrder::kLetOneThrough) tenant.gate_open = order == GateOrder::kOpen;
  tenant.busy = true;  // assumed until the tenant answers this order
  table.actions.emplace_back(SetGate{id, tenant.gate_seq, order});
}

// The first move since turns began finds no host memory ready, so it is not measured: later moves
// are faster.
bool measure_move(TurnTable& table, LeaseState& lease) {
  bool measured = false;
  for (GpuSlot slot : table.turn_gpus(lease)) {
    GpuState& gpu = table.gpus[slot.value];
    const Bytes moved = gpu.since_entering.in + gpu.since_entering.out;
    const bool is_switch = lease.phase == Phase::kHolding && gpu.last_holder != lease.terms.id;
    if (gpu.last_holder == LeaseId{} || (!is_switch && !MoveCost::tells_rate(moved))) continue;
    const Duration took = table.now - lease.entering_since;
    if (!lease.speed) lease.speed = gpu.cost;
    lease.speed->measure(moved, took);
    gpu.cost.measure(moved, took);
    measured = true;
  }
  return measured;
}

bool has_moved(const TurnTable& table, const LeaseState& lease) {
  return std::any_of(lease.gpus.begin(), lease.gpus.end(), [&](GpuSlot gpu) {
    const Moved& moved = table.gpus[gpu.value].since_entering;
    return !(moved.in + moved.out).is_zero();
  });
}

void record_switch(TurnTable& table, LeaseState& lease) {
  const Duration took = table.now - lease.entering_since;
  if (measure_move(table, lease)) lease.cost.add(seconds(took));
  for (GpuSlot slot : table.turn_gpus(lease)) {
    GpuState& gpu = table.gpus[slot.value];
    gpu.since_switch.took += took;
    if (gpu.last_holder == lease.terms.id) continue;
    ++gpu.counts.handovers;
    gpu.switches.push_back(
        {table.now, gpu.last_holder, lease.terms.id, std::exchange(gpu.since_switch, {})});
    if (gpu.switches.size() > kSwitchesKept) gpu.switches.pop_front();
    gpu.last_holder = lease.terms.id;
  }
}

void reopen(TurnTable& table, LeaseState& lease) {
  lease.phase = Phase::kHolding;
  lease.turn_since = table.now;
  table.changed = true;
}

}  // namespace

void begin_entering(TurnTable& table, LeaseState& lease, bool backfill) {
  lease.phase = Phase::kEntering;
  lease.entering_since = table.now;
  lease.backfill = backfill;
  for (GpuSlot gpu : lease.gpus) table.gpus[gpu.value].since_entering = {};
  table.changed = true;
}

// Memory that has arrived on the GPU stays there until another lease needs the room.
void abandon_entering(TurnTable& table, LeaseState& lease) {
  measure_move(table, lease);
  for (GpuSlot gpu : table.turn_gpus(lease)) {
    table.gpus[gpu.value].since_switch.took += table.now - lease.entering_since;
  }
  lease.phase = Phase::kApart;
  lease.backfill = false;
  table.changed = true;
}

void finish_entering(TurnTable& table, LeaseState& lease) {
  if (lease.phase != Phase::kEntering) return;
  const Slots gpus = table.turn_gpus(lease);
  for (const LeaseState* other : table.claimants(gpus, lease.terms.id)) {
    if (other->phase != Phase::kLeaving) continue;
    // Time that the last holder takes to drain is not a cost of moving.
    if (!has_moved(table, lease)) lease.entering_since = table.now;
    return;
  }
  // Memory that was asked for, but not granted yet, counts as missing, too. Otherwise a short turn
  // would always be over before there is room for this memory.
  for (TenantId id : lease.tenants) {
    for (GpuSlot gpu : lease.gpus) {
      const Holding& h = table.memory.at(id, gpu);
      if (!h.out().is_zero() || !h.coming.is_zero() || !h.leaving.is_zero()) return;
      if (!(h.unbacked + h.wired_unbacked).is_zero()) return;
    }
  }
  lease.phase = Phase::kHolding;
  lease.turn_since = table.now;
  lease.waits_since.reset();
  record_switch(table, lease);
  table.changed = true;
}

// Opens the gates of all tenants that have all their memory on the lease's GPUs, even of tenants
// that came while the lease was holding.
void open_resident(TurnTable& table, LeaseState& lease) {
  for (TenantId id : lease.tenants) {
    const TenantState& tenant = table.tenants.at(id);
    if (tenant.gate_open || !tenant.reachable || tenant.dead) continue;
    const bool here = std::all_of(lease.gpus.begin(), lease.gpus.end(), [&](GpuSlot gpu) {
      const Holding& h = table.memory.at(id, gpu);
      return h.out().is_zero() && h.coming.is_zero() && h.leaving.is_zero();
    });
    if (here) set_gate(table, id, GateOrder::kOpen);
  }
}

void close_gates(TurnTable& table, LeaseState& lease) {
  lease.phase = Phase::kLeaving;
  lease.backfill = false;
  lease.reported = false;
  lease.closed_at = table.now;
  lease.closed_awake = table.awake;
  lease.letting = {table.now, table.settings.drain_patience, {}};
  for (TenantId id : lease.tenants) {
    table.tenants.at(id).lets = 0;
    if (table.tenants.at(id).gate_open) set_gate(table, id, GateOrder::kClose);
  }
  table.changed = true;
}

// Do not wait for a tenant that cannot answer: its gate is shut, and its memory stays where it is.
void finish_leaving(TurnTable& table, LeaseState& lease) {
  if (lease.phase != Phase::kLeaving) return;
  const bool drained = std::all_of(lease.tenants.begin(), lease.tenants.end(), [&](TenantId id) {
    const TenantState& tenant = table.tenants.at(id);
    return tenant.drained() || !tenant.reachable || tenant.dead;
  });
  if (drained) {
    bool all = true;
    for (TenantId id : lease.tenants) {
      TenantState& tenant = table.tenants.at(id);
      tenant.undrained = !tenant.drained();
      all = all && (tenant.drained() || tenant.dead);
    }
    if (all) lease.drain_owed = Duration::zero();
    stop_clock(table, lease);
    lease.phase = Phase::kApart;
    table.changed = true;
  } else if (!lease.aside && !somebody_waits_for(table, lease)) {
    reopen(table, lease);
  }
}

// A kernel may wait for a launch that waits at the gate, so submissions pass, one at a time.
// Tenants that have drained come first, because their submissions do not delay the work that still
// has to drain. The tenant of the last submission continues without waiting as long as it keeps
// draining, so that it catches up with the others. Any other submission passes only when draining
// has made no progress for a while. The time to wait grows with each such submission, so that long
// kernels are not followed by new work for ever.
void let_through(TurnTable& table, LeaseState& lease) {
  Letting& letting = lease.letting;
  TenantId best{};
  int best_rank = 0;
  for (TenantId id : lease.tenants) {
    const TenantState& t = table.tenants.at(id);
    if (!t.reachable || t.dead) continue;
    if (!t.answered()) return;  // its answer to the last order is still to come
    if (t.waiting == 0) continue;
    const int rank = t.drained() ? (id == letting.last ? 4 : 3) : t.ready > 0 ? 2 : 1;
    const bool fewer = rank == best_rank && t.lets < table.tenants.at(best).lets;
    if (rank > best_rank || fewer) {
      best = id;
      best_rank = rank;
    }
  }
  if (best_rank == 0) return;
  const bool catching_up = best_rank == 4 || (best_rank == 2 && best == letting.last);
  if (!catching_up) {
    if (table.now < letting.since + letting.patience) return;
    letting.patience *= 4;
  }
  letting.since = table.now;
  letting.last = best;
  ++table.tenants.at(best).lets;
  set_gate(table, best, GateOrder::kLetOneThrough);
}

// Runs before every other decision, because none may count on a lease that is put aside.
void leave_aside(TurnTable& table) {
  for (auto& [id, lease] : table.leases) {
    if (!lease.aside) continue;
    if (lease.phase == Phase::kEntering) abandon_entering(table, lease);
    if (lease.phase == Phase::kHolding) close_gates(table, lease);
  }
}

// Memory that moves.

namespace {

// The largest whole number of pieces that is not more than `bytes`.
Bytes in_pieces(Bytes bytes, Bytes piece) {
  const std::uint64_t size = std::max<std::uint64_t>(piece.count(), 1);
  return Bytes(bytes.count() / size * size);
}

// The smallest whole number of pieces that is not less than `bytes`.
Bytes whole_pieces(Bytes bytes, Bytes piece) { return in_pieces(bytes + piece - Bytes(1), piece); }

Bytes lacking(const TurnTable& table, GpuSlot gpu) {
  Bytes needed;
  for (const auto& [id, lease] : table.leases) {
    if (lease.phase == Phase::kApart) continue;
    const Holding h = table.memory.of_lease(id, gpu);
    needed += h.unbacked + h.wired_unbacked;
    if (lease.phase != Phase::kLeaving) needed += h.missing();
  }
  return needed + table.memory.used(gpu) - table.memory.capacity(gpu);
}

void serve_growth(TurnTable& table, LeaseState& lease, TenantId id, GpuSlot gpu) {
  TenantState& tenant = table.tenants.at(id);
  if (tenant.growth.empty() || !tenant.can_answer()) return;
  if (!table.memory.of_lease(lease.terms.id, gpu).missing().is_zero()) return;
  Holding& held = table.memory.at(id, gpu);
  for (auto it = tenant.growth.begin(); it != tenant.growth.end();) {
    if (it->gpu != gpu) {
      ++it;
      continue;
    }
    if (it->bytes > free_on(table.memory, gpu)) return;
    (it->wired ? held.wired_unbacked : held.unbacked) -= it->bytes;
    (it->wired ? held.wired : held.resident) += it->bytes;
    table.actions.push_back(AnswerGrow{id, table.memory.uuid(gpu), it->seq, GrowAnswer::kGranted});
    it = tenant.growth.erase(it);
  }
}

// A tenant restores whole blocks of up to a piece, and gives back room into which no block fits. So
// give room in whole pieces. Give less than a piece only if it is all that the tenant still lacks
// and nothing is on its way to the tenant: otherwise a block may be left over that is larger than
// the rest of the room. A tenant that still moves memory out by an earlier order gets no room, as
// it would only keep the room from others.
void give_room(TurnTable& table, LeaseState& lease, GpuSlot gpu) {
  if (std::find(lease.gpus.begin(), lease.gpus.end(), gpu) == lease.gpus.end()) return;
  for (TenantId id : lease.tenants) {
    if (!table.tenants.at(id).can_answer()) continue;
    Holding& held = table.memory.at(id, gpu);
    const Bytes room = std::min(free_on(table.memory, gpu), held.missing());
    const bool all = room == held.missing();
    const bool usable = room >= table.settings.piece || (all && held.coming.is_zero());
    if (usable && !room.is_zero() && held.leaving.is_zero()) {
      const Bytes given = all ? room : in_pieces(room, table.settings.piece);
      held.coming += given;
      table.actions.push_back(Restore{id, table.memory.uuid(gpu), given});
    }
    serve_growth(table, lease, id, gpu);
  }
}

// The tenants whose memory moves out, in order. Tenants of leases above a soft limit come first,
// those of the lowest priority before others. Then come the leases whose turn is furthest away:
// leases that want no turn (the longest idle first), then waiting leases (the last in order first).
// Leases that are entering come last, and only where a lease that is leaving needs their room.
std::vector<TenantId> victims(const TurnTable& table, GpuSlot gpu, bool entering_too) {
  std::vector<const LeaseState*> leases;
  for (const auto& [id, lease] : table.leases) {
    const bool holds = std::find(lease.gpus.begin(), lease.gpus.end(), gpu) != lease.gpus.end();
    const bool gives =
        lease.phase == Phase::kApart || (entering_too && lease.phase == Phase::kEntering);
    if (holds && gives) leases.push_back(&lease);
  }
  std::sort(leases.begin(), leases.end(), [&](const LeaseState* a, const LeaseState* b) {
    if (a->phase != b->phase) return a->phase == Phase::kApart;
    if (a->above_soft != b->above_soft) return a->above_soft;
    const bool lower = a->terms.priority < b->terms.priority;
    if (a->above_soft && a->terms.priority != b->terms.priority) return lower;
    if (table.wants(*a) != table.wants(*b)) return !table.wants(*a);
    if (!table.wants(*a) && a->held_last != b->held_last) return a->held_last < b->held_last;
    return goes_before(table, *b, *a);
  });
  std::vector<TenantId> tenants;
  for (const LeaseState* lease : leases) {
    for (TenantId id : lease->tenants) {
      if (table.can_give(table.tenants.at(id)) && table.tenants.at(id).drained())
        tenants.push_back(id);
    }
  }
  return tenants;
}

// Adds the time since the last order to the tenant's debt if the tenant did not carry out all of
// the last order; else the time without an order adds nothing. At most kMostBetween is added: if
// more time has passed, the tenant may have had a turn in between, and the time of a turn is no
// debt.
void begin_order(TurnTable& table, TenantId id, GpuSlot gpu) {
  constexpr Duration kMostBetween = std::chrono::minutes(1);
  MoveDebt& debt = table.tenants.at(id).moves[gpu];
  debt.partly = false;
  if (debt.given_back) debt.owed += std::min(table.awake - *debt.given_back, kMostBetween);
  debt.given_back.reset();
}

// Orders up to `bytes` of the tenant's memory out, as far as host memory has room, and returns how
// much was ordered. Only one order is open at a time: a tenant may move up to a block more than an
// order says, so the rest of several open orders would be unknown.
Bytes order_out(TurnTable& table, TenantId id, GpuSlot gpu, Bytes bytes) {
  Holding& held = table.memory.at(id, gpu);
  if (!held.leaving.is_zero()) return {};
  bytes = std::min(bytes, held.resident);
  const Bytes beyond = std::min(held.resident - bytes, table.settings.piece);
  if (bytes + beyond > HostNeeds(table.memory).left_for_moves())
    bytes = std::min(bytes, table.may_go_out());
  if (bytes.is_zero()) return {};
  ++table.gpus[gpu.value].counts.evictions;
  held.leaving = bytes;
  begin_order(table, id, gpu);
  table.actions.push_back(Evict{id, table.memory.uuid(gpu), bytes});
  return bytes;
}

void make_room(TurnTable& table, GpuSlot gpu, Bytes lacking, bool entering_too) {
  for (const auto& [id, tenant] : table.tenants)
    lacking -= on_its_way_out(tenant, table.memory.at(id, gpu));
  if (lacking.is_zero()) return;
  for (TenantId id : victims(table, gpu, entering_too)) {
    const Holding& held = table.memory.at(id, gpu);
    if (!held.leaving.is_zero() && held.leaving < held.resident)
      return;  // the tenant's open order must end before its next order
    lacking -= order_out(table, id, gpu, whole_pieces(lacking, table.settings.piece));
    if (lacking.is_zero()) return;
  }
}

void evict_aside(TurnTable& table, GpuSlot gpu) {
  for (auto& [id, lease] : table.leases) {
    const bool here = std::find(lease.gpus.begin(), lease.gpus.end(), gpu) != lease.gpus.end();
    if (!lease.aside || !here || lease.phase != Phase::kApart) continue;
    for (const TenantId tenant : lease.tenants) {
      if (!table.can_give(table.tenants.at(tenant)) || !table.tenants.at(tenant).drained())
        continue;
      order_out(table, tenant, gpu, table.memory.at(tenant, gpu).resident);
    }
  }
}

}  // namespace

// A kernel may wait for a thread that waits for memory. So a lease that is leaving gets its memory
// before anything else moves in.
void move_memory(TurnTable& table) {
  for (std::uint32_t i = 0; i < table.gpus.size(); ++i) {
    const GpuSlot gpu{i};
    if (table.memory.is_lost(gpu)) continue;
    bool leaving_first = false;
    for (auto& [id, lease] : table.leases) {
      if (lease.phase != Phase::kLeaving) continue;
      for (TenantId tenant : lease.tenants) serve_growth(table, lease, tenant, gpu);
      const Holding h = table.memory.of_lease(id, gpu);
      leaving_first = leaving_first || !(h.unbacked + h.wired_unbacked).is_zero();
    }
    for (auto& [id, lease] : table.leases) {
      const bool has_turn = lease.phase == Phase::kEntering || lease.phase == Phase::kHolding;
      const bool may = !leaving_first || lease.phase == Phase::kHolding;
      if (has_turn && may && lease.retry_at <= table.now) give_room(table, lease, gpu);
    }
    evict_aside(table, gpu);
    make_room(table, gpu, lacking(table, gpu), leaving_first);
  }
}

// Events.

namespace {

// An order that found nothing to move is tried again sooner than an order that failed: usually the
// tenant has freed the memory, and is about to report that.
constexpr int kSoonerIfNothingMoved = 20;

// The most requests for memory that a tenant may have open; no program has so many threads. Further
// requests are refused.
constexpr std::size_t kMostGrowth = 4096;

// A tenant that moves at least 16 MiB a second owes nothing. Even a machine that swaps moves 16 MiB
// a second.
void pay(MoveDebt& debt, Bytes moved) {
  const auto paid = std::chrono::milliseconds(moved.count() * 1000 / mib(16).count());
  debt.owed = std::max<Duration>(debt.owed - paid, Duration::zero());
}

void settle_order(TurnTable& table, const Evicted& event, GpuSlot gpu, Bytes moved, bool ended) {
  MoveDebt& debt = table.tenants.at(event.tenant).moves[gpu];
  pay(debt, moved);
  debt.partly = debt.partly || event.failed || !event.returned.is_zero();
  if (!ended) return;
  if (debt.partly) {
    debt.given_back = table.awake;
  } else {
    debt = {};
  }
}

void grow_hosted(TurnTable& table, const Grow& event, GpuSlot gpu, Bytes most) {
  const GrowAnswer answer =
      ResidencyRules(table.memory).check_hosted(event.tenant, gpu, event.bytes, most);
  if (answer == GrowAnswer::kGranted) table.memory.at(event.tenant, gpu).hosted += event.bytes;
  table.actions.push_back(AnswerGrow{event.tenant, event.gpu, event.seq, answer});
}

}  // namespace

void apply(TurnTable& table, const AddTenant& event) {
  const auto lease = table.leases.find(event.lease);
  if (lease == table.leases.end() || table.tenants.contains(event.tenant)) return;
  std::map<GpuSlot, MoveDebt> owed;
  bool open = event.gate_open;
  if (const auto before = table.tenants.find(event.replaces); before != table.tenants.end()) {
    TenantState& was = before->second;
    owed = std::move(was.moves);
    // If an order to shut the gate was carried out, the gate cannot be open again.
    open = open && (was.gate_open || !was.answered());
  }
  // Remove the old tenant and add the new one in one step: otherwise others would be given the room
  // in between.
  if (event.replaces.value != 0) apply(table, RemoveTenant{event.replaces});
  TenantState& tenant = table.tenants[event.tenant];
  tenant.moves = std::move(owed);
  tenant.lease = event.lease;
  tenant.gate_open = open;
  tenant.busy = open;
  lease->second.tenants.insert(event.tenant);
  table.memory.add(event.tenant, event.lease);
  for (GpuSlot slot : lease->second.gpus) {
    TenantMemory said;
    for (const TenantMemory& m : event.memory) {
      if (m.gpu == table.memory.uuid(slot)) said = m;
    }
    table.memory.take_over(event.tenant, slot, said);
    if (!open && !said.resident.is_zero()) tenant.undrained = true;
  }
  // An earlier daemon let the tenant run. Its lease continues unless another has a better claim.
  if (open && lease->second.phase == Phase::kApart) {
    lease->second.phase = Phase::kHolding;
    lease->second.turn_since = table.now;
  }
  // The tenant may not have received the message that its lease's turn is over.
  if (open && lease->second.phase != Phase::kHolding) {
    set_gate(table, event.tenant, GateOrder::kClose);
  }
}

void apply(TurnTable& table, const TenantDied& event) {
  const auto found = table.tenants.find(event.tenant);
  if (found == table.tenants.end()) return;
  TenantState& tenant = found->second;
  tenant.dead = true;
  tenant.busy = false;
  tenant.waiting = tenant.ready = 0;
  tenant.growth.clear();
  tenant.asked_on_hold.clear();
  tenant.gate_open = false;
  tenant.seen_seq = tenant.gate_seq;
  table.memory.mark_dead(event.tenant);
}

void apply(TurnTable& table, const RemoveTenant& event) {
  LeaseState* lease = table.lease_of(event.tenant);
  if (lease == nullptr) return;
  lease->tenants.erase(event.tenant);
  table.memory.remove(event.tenant);
  table.tenants.erase(event.tenant);
  if (!lease->tenants.empty()) return;
  stop_clock(table, *lease);
  lease->phase = Phase::kApart;
  lease->idle_since.reset();
}

void apply(TurnTable& table, const Reachable& event) {
  const auto found = table.tenants.find(event.tenant);
  if (found == table.tenants.end()) return;
  found->second.reachable = event.reachable;
}

void apply(TurnTable& table, const TenantStatus& event) {
  const auto found = table.tenants.find(event.tenant);
  if (found == table.tenants.end() || found->second.dead) return;
  TenantState& tenant = found->second;
  tenant.seen_seq = event.gate_seq;
  tenant.waiting = event.waiting;
  tenant.ready = std::min(event.ready, event.waiting);
  // The gate has had a newer order since: ignore this answer, because the next one is on its way.
  if (!tenant.answered()) return;
  tenant.busy = event.busy;
  if (!tenant.busy || tenant.gate_open) tenant.undrained = false;
  // The daemon ended, or the tenant was stopped, before the tenant had drained. Drain now: close
  // the gates, and let submissions through one at a time where needed, because a kernel may wait
  // for a launch that waits at the gate.
  LeaseState& lease = table.leases.at(tenant.lease);
  if (tenant.undrained && lease.phase == Phase::kApart) close_gates(table, lease);
}

void apply(TurnTable& table, const Grow& event) {
  auto slot = table.memory.slot_of(event.gpu);
  if (slot && table.memory.is_lost(*slot)) slot.reset();
  LeaseState* lease = table.lease_of(event.tenant);
  Bytes limit, oversize;
  if (slot && lease != nullptr) {
    for (const LeaseTerms::Gpu& gpu : lease->terms.gpus) {
      if (gpu.uuid != event.gpu) continue;
      limit = gpu.limit;
      oversize = gpu.oversize;
    }
  }
  const bool asks = slot && lease != nullptr && !table.tenants[event.tenant].dead;
  if (asks && table.on_hold() && table.tenants[event.tenant].asked_on_hold.size() < kMostGrowth) {
    table.tenants[event.tenant].asked_on_hold.push_back(event);
    return;
  }
  if (asks && event.hosted) return grow_hosted(table, event, *slot, oversize);
  GrowAnswer answer = GrowAnswer::kRefusedLimit;
  if (asks && table.tenants[event.tenant].growth.size() < kMostGrowth) {
    answer = ResidencyRules(table.memory)
                 .check_growth(event.tenant, *slot, event.bytes, event.wired, limit);
  }
  if (answer == GrowAnswer::kGranted) {
    Holding& held = table.memory.at(event.tenant, *slot);
    held.admit(event.bytes, event.wired);
    const bool off = table.gpus[slot->value].settings.mode == TurnsMode::kOff;
    if (!off || table.memory.deficit(*slot).is_zero()) {
      table.tenants[event.tenant].growth.push_back({*slot, event.seq, event.bytes, event.wired});
      return;
    }
    held.withdraw(event.bytes, event.wired);
    answer = GrowAnswer::kRefusedTurnsOff;
  }
  Bytes to_host;
  if (asks && !event.wired) {
    to_host =
        ResidencyRules(table.memory).to_host(event.tenant, *slot, event.bytes, limit, oversize);
  }
  table.actions.push_back(AnswerGrow{event.tenant, event.gpu, event.seq, answer, to_host});
}

void apply(TurnTable& table, const Shrink& event) {
  const auto slot = table.memory.slot_of(event.gpu);
  Holding* held = slot ? table.memory.find(event.tenant, *slot).if_there() : nullptr;
  if (held == nullptr) return;
  const Bytes resident = std::min(event.resident, held->resident);
  const Bytes out = std::min(event.out, held->out());
  held->resident -= resident;
  held->movable -= resident + out;
  held->leaving = std::min(held->leaving, held->resident);
  held->wired -= event.wired;
  held->hosted -= event.hosted;
  if ((event.resident + event.out + event.wired + event.hosted).is_zero()) return;
  TenantState& tenant = table.tenants.at(event.tenant);
  LeaseState& lease = table.leases.at(tenant.lease);
  if (std::exchange(tenant.moved_nothing, false)) tenant.retry_at = table.now;
  if (std::exchange(lease.moved_nothing, false)) lease.retry_at = table.now;
}

void apply(TurnTable& table, const Measured& event) {
  const auto slot = table.memory.slot_of(event.gpu);
  Holding* held = slot ? table.memory.find(event.tenant, *slot).if_there() : nullptr;
  if (held == nullptr || table.tenants.at(event.tenant).dead) return;
  held->beside = event.beside;
  if (event.confirms) held->lingering = Bytes();
}

void apply(TurnTable& table, const Evicted& event) {
  const auto slot = table.memory.slot_of(event.gpu);
  Holding* held = slot ? table.memory.find(event.tenant, *slot).if_there() : nullptr;
  if (held == nullptr) return;
  LeaseState& lease = *table.lease_of(event.tenant);
  const Bytes moved = std::min(event.bytes, held->resident);
  held->resident -= moved;
  if (event.doubted) held->lingering += moved;
  held->leaving -= event.bytes + event.returned;
  settle_order(table, event, *slot, moved, held->leaving.is_zero());
  GpuState& gpu = table.gpus[slot->value];
  gpu.counts.evicted += moved;
  for (Moved* sum : {&gpu.since_switch, &gpu.since_entering}) {
    sum->out += moved;
    sum->clean += std::min(event.clean, moved);
  }
  // The tenant has less than it has reported, and is about to report that. An order now would find
  // nothing again.
  TenantState& tenant = table.tenants.at(event.tenant);
  tenant.moved_nothing =
      !event.failed && moved.is_zero() && !event.returned.is_zero() && !held->resident.is_zero();
  if (event.failed) tenant.retry_at = table.now + table.settings.retry;
  if (tenant.moved_nothing) {
    tenant.retry_at =
        std::max(tenant.retry_at, table.now + table.settings.retry / kSoonerIfNothingMoved);
  }
  if (event.failed) table.report(Trouble::kMoveFailed, lease.terms.id, event.tenant);
}

void apply(TurnTable& table, const Restored& event) {
  const auto slot = table.memory.slot_of(event.gpu);
  Holding* held = slot ? table.memory.find(event.tenant, *slot).if_there() : nullptr;
  if (held == nullptr) return;
  LeaseState& lease = *table.lease_of(event.tenant);
  const Bytes moved = std::min({event.bytes, held->coming, held->out()});
  held->resident += moved;
  held->coming -= event.bytes + event.returned;
  pay(table.tenants.at(event.tenant).moves[*slot], moved);
  GpuState& gpu = table.gpus[slot->value];
  gpu.counts.restored += moved;
  gpu.since_switch.in += moved;
  gpu.since_entering.in += moved;
  // The tenant had room for any block, or for all of its evicted memory, and has not used it. The
  // same order now would change nothing. Memory that is still coming by another order counts as
  // evicted. Until the retry, other leases can have the turn, and the room of this lease's memory
  // on the GPU.
  const Bytes enough = std::min(held->out(), table.settings.piece);
  lease.moved_nothing = !event.failed && !enough.is_zero() && event.returned >= enough;
  if (!lease.moved_nothing && !event.failed) return;
  lease.retry_at = table.now + table.settings.retry;
  if (event.failed) table.report(Trouble::kMoveFailed, lease.terms.id, event.tenant);
}

void apply_held_growth(TurnTable& table) {
  for (auto& [id, tenant] : table.tenants) {
    for (const Grow& grow : std::exchange(tenant.asked_on_hold, {})) apply(table, grow);
  }
}

}  // namespace gpurota::sched
