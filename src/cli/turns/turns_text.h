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
// switch 79 GiB/s". Empty: none of the lease's memory may have to move, and no known switch shows a
// speed.
std::string speed_text(const proto::TurnGpu& gpu, const proto::TurnLease& lease);

std::string turns_text(const proto::ListTurns::Reply& reply, const Layout& layout, WallTime now);

}  // namespace gpurota::cli
