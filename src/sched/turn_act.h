// Changes the table: by the clock, when a phase begins or ends, when memory moves, and by an event.
// Orders to tenants are added to `table.actions`. Private to src/sched.
#pragma once

#include "sched/turn_table.h"

namespace gpurota::sched {

// Time: when turns begin and end on a GPU, how much time each lease has had, which leases want a
// turn, and the budgets of priorities.

void update_contention(TurnTable& table);
void update_spent_budgets(TurnTable& table);
void update_wishes(TurnTable& table);
void update_budgets(TurnTable& table);

// Phase changes of a lease: gates, draining, the time of a switch.

void begin_entering(TurnTable& table, LeaseState& lease, bool backfill);
void abandon_entering(TurnTable& table, LeaseState& lease);
void finish_entering(TurnTable& table, LeaseState& lease);
// Opens the gates of tenants whose memory is all there.
void open_resident(TurnTable& table, LeaseState& lease);
void close_gates(TurnTable& table, LeaseState& lease);
// Lets one submission of a leaving lease through: a kernel of the lease may wait for that
// submission.
void let_through(TurnTable& table, LeaseState& lease);
void finish_leaving(TurnTable& table, LeaseState& lease);
// Leases that are put aside (Turns::set_aside) give up their turns.
void leave_aside(TurnTable& table);

// Evicts memory of leases whose turn is furthest away, and gives the room to leases that have a
// turn.
void move_memory(TurnTable& table);

// Apply an event. The only decision about memory here is whether a growth is admitted.

void apply(TurnTable& table, const AddTenant& event);
void apply(TurnTable& table, const TenantDied& event);
void apply(TurnTable& table, const RemoveTenant& event);
void apply(TurnTable& table, const Reachable& event);
void apply(TurnTable& table, const TenantStatus& event);
void apply(TurnTable& table, const Grow& event);
void apply(TurnTable& table, const Shrink& event);
void apply(TurnTable& table, const Measured& event);
void apply(TurnTable& table, const Evicted& event);
void apply(TurnTable& table, const Restored& event);
inline void apply(TurnTable&, const Tick&) {}
// Applies the growth that was asked for during the hold after a restart, when all tenants are known
// again.
void apply_held_growth(TurnTable& table);

}  // namespace gpurota::sched
