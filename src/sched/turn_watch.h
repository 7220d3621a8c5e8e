// Reports, or ends, leases that do not yield, that have no room, or whose tenants do not answer,
// and reports a GPU that holds more than its capacity. Private to src/sched.
//
// A tenant owes two things: the end of its work once its gate is shut, and the moves that it was
// ordered to make. The time in which it owes them counts only while another lease waits, while the
// tenant can answer (a stopped one has a bound of its own: watch_stopped), and while the scheduler
// itself runs: no step adds more than kMostStep, so a machine that was suspended, or a daemon that
// was stopped, ends nobody.
#pragma once

#include "sched/turn_table.h"
#include "sched/turns_view.h"

namespace gpurota::sched {

// How long a lease may lack room before a report.
inline constexpr Duration kNoRoomLasts = std::chrono::seconds(2);

// Counts the time since the last event. To be called before an event changes anything.
void advance_time(TurnTable& table, TimePoint now);
// Reports a lease that has owed for half of Settings::longest_drain; ends one that has owed for all
// of it.
void watch_debts(TurnTable& table, LeaseState& lease);

void watch_excess(TurnTable& table);
// `obstacle`: what hinders the lease, if it waits for memory.
void watch_room(TurnTable& table, LeaseState& lease, Wait obstacle);
void watch_stopped(TurnTable& table, LeaseState& lease, Wait obstacle);
// The lease must be leaving.
void watch_deadline(TurnTable& table, LeaseState& lease);

}  // namespace gpurota::sched
