// Reads the table for others: holders, waiting leases and what they wait for, and the next
// deadline. Private to src/sched.
#pragma once

#include "sched/turn_table.h"
#include "sched/turns_view.h"

namespace gpurota::sched {

// Nothing: there is no such lease.
std::optional<LeaseView> explain_lease(const TurnTable& table, LeaseId id, TimePoint now);
std::optional<LeaseTurn> turn_of(const TurnTable& table, LeaseId id);
// The GPUs that are not lost, in no particular order.
std::vector<GpuView> view_gpus(const TurnTable& table);
// When to call handle(Tick) if nothing happens before.
std::optional<TimePoint> next_deadline(const TurnTable& table);

}  // namespace gpurota::sched
