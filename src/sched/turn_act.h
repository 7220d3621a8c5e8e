// Changes the table: by the clock, when a phase begins or ends, when memory moves, and by an event.
// Orders to tenants are added to `table.actions`. Private to src/sched.
#pragma once

#include "sched/turn_table.h"

namespace gpurota::sched {

// Time: when turns begin and end on a GPU, who has had how much, who wants a turn, and the budgets
// of priorities.

void update_contention(TurnTable& table);
void update_spent_budgets(TurnTable& table);
void update_wishes(TurnTable& table);
void update_budgets(TurnTable& table);

// From one phase of a lease into the next: gates, draining, what a switch took.

void begin_entering(TurnTable& table, LeaseState& lease, bool backfill);
void abandon_entering(TurnTable& table, LeaseState& lease);
void finish_entering(TurnTable& table, LeaseState& lease);
// Opens the gates of tenants whose memory is all there.
void open_resident(TurnTable& table, LeaseState& lease);
void close_gates(TurnTable& table, LeaseState& lease);
// One submission of a lease whose gates are shut, as a kernel of its may wait for that.
void let_through(TurnTable& table, LeaseState& lease);
void finish_leaving(TurnTable& table, LeaseState& lease);
// Leases that are put aside (Turns::set_aside) give up their turns.
void leave_aside(TurnTable& table);

// Room is made by those whose turn is furthest away, and given to those who have theirs.
void move_memory(TurnTable& table);

// An event. Nothing is decided but whether a growth is admitted.

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
