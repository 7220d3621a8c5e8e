// The text of gpurota turns. Pure.
#pragma once

#include "cli/text/table.h"
#include "proto/methods.h"

#include <string>

namespace gpurota::cli {

// Of one swap lease on each of its GPUs: whose turn it is, why it waits, where its memory is. Empty
// for any other.
std::string explain_turns(const proto::ListTurns::Reply& reply, LeaseId id, WallTime now);

std::string turns_text(const proto::ListTurns::Reply& reply, const Layout& layout, WallTime now);

}  // namespace gpurota::cli
