// Reports, or ends, leases that do not yield, that have no room, or whose tenants do not answer,
// and reports a GPU that holds more than its capacity. Private to src/sched.
//
// A tenant owes two things: the end of its work once its gate is shut, and the moves that it was
// ordered to make. Time counts as owed only while another lease waits and while the tenant can
// answer (a stopped tenant has a bound of its own: watch_stopped). Time in which the scheduler does
// not run does not count: no step adds more than kMostStep. So no lease ends because the machine
// was suspended or the daemon was stopped.
#pragma once

#include "sched/turn_table.h"
#include "sched/turns_view.h"

namespace gpurota::sched {

// How long a lease may lack room before a report.
inline constexpr Duration kNoRoomLasts = std::chrono::seconds(2);

// Counts the time since the last event. To be called before an event changes anything.
void advance_time(TurnTable& table, TimePoint now);
// Reports a lease that has owed for half of Settings::longest_drain, and ends it after all of that
// time.
void watch_debts(TurnTable& table, LeaseState& lease);

void watch_excess(TurnTable& table);
// `obstacle`: what hinders the lease, if it waits for memory.
void watch_room(TurnTable& table, LeaseState& lease, Wait obstacle);
void watch_stopped(TurnTable& table, LeaseState& lease, Wait obstacle);
// The lease must be leaving.
void watch_deadline(TurnTable& table, LeaseState& lease);

}  // namespace gpurota::sched
