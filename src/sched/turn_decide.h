// Decides which lease has a turn next, and for how long, and finds what is in the way. Private to
// src/sched.
//
// All but the last three functions only read the table. The last three begin and end turns, by the
// functions of turn_act.h.
#pragma once

#include "sched/turn_table.h"
#include "sched/turns_view.h"

namespace gpurota::sched {

// The order of leases: soft limits, priorities within their budgets, then the time they have had.

bool is_above_soft(const TurnTable& table, const LeaseState& lease);
// A lease above its soft limit ranks below all leases that are not above theirs. Leases above their
// soft limits rank by priority.
int rank(const LeaseState& lease);
// While the budget of one of its GPUs is spent, a lease has the lowest rank of all leases.
int effective_priority(const TurnTable& table, const LeaseState& lease);
bool goes_before(const TurnTable& table, const LeaseState& a, const LeaseState& b);

// How long a turn lasts, given the cost of moving memory, and how long a holder may be idle.

Duration quantum(const TurnTable& table, const LeaseState& lease);
Duration idle_before_release(const TurnTable& table, const LeaseState& holder,
                             const LeaseState& to);

// Obstacles between a lease and its turn: memory, processes that cannot answer, other leases.

// Whether the lease could run if it had the turn.
bool eligible(const TurnTable& table, const LeaseState& lease);
Wait hindrance(const TurnTable& table, const LeaseState& lease);
// Whether the lease waits for its turn, or, in its turn, for memory that it has asked for.
bool waits_for_memory(const TurnTable& table, const LeaseState& lease);
bool waits_for(const TurnTable& table, const LeaseState& other, const LeaseState& holder);
bool somebody_waits_for(const TurnTable& table, const LeaseState& holder);
// The tenant with the most memory on this lease's GPUs, among the tenants of other leases that do
// not answer. 0: none.
TenantId has_most_of(const TurnTable& table, const LeaseState& lease);
// When the scheduler will end the lease of a tenant that does not answer, to free memory that this
// lease needs. Nothing: there is no such tenant, or no bound.
std::optional<TimePoint> held_up_until(const TurnTable& table, const LeaseState& lease);

// The decision: which leases leave, enter, or begin a new quantum.

void resolve_conflicts(TurnTable& table);
void choose_next(TurnTable& table);
void renew_quanta(TurnTable& table);

}  // namespace gpurota::sched
