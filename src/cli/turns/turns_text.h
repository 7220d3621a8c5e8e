// The text of gpurota turns. Pure.
#pragma once

#include "cli/text/table.h"
#include "proto/methods.h"

#include <string>

namespace gpurota::cli {

// For one swap lease, on each of its GPUs: which lease has the turn, why this one waits, and where
// its memory is. Empty for any other lease.
std::string explain_turns(const proto::ListTurns::Reply& reply, LeaseId id, WallTime now);

// How fast a lease's memory moves: "15 GiB of the 21 GiB that may have to move are pinned; last
// switch 79 GiB/s". The part about memory is left out if the lease has no memory that may have to
// move. The part about the last switch is left out if none of the known switches shows a speed.
// Empty: both parts are left out.
std::string speed_text(const proto::TurnGpu& gpu, const proto::TurnLease& lease);

std::string turns_text(const proto::ListTurns::Reply& reply, const Layout& layout, WallTime now);

}  // namespace gpurota::cli
