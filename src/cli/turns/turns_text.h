// The text of gpurota turns. Pure.
#pragma once

#include "cli/text/table.h"
#include "proto/methods.h"

#include <string>

namespace gpurota::cli {

// For one swap lease, on each of its GPUs: which lease has the turn, why this one waits, and where
// its memory is. Empty for any other lease.
std::string explain_turns(const proto::ListTurns::Reply& reply, LeaseId id, WallTime now);

std::string turns_text(const proto::ListTurns::Reply& reply, const Layout& layout, WallTime now);

}  // namespace gpurota::cli
