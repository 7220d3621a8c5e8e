// The rows of `gpurota status`: one for each lease on a GPU and for each use without one, one for a
// GPU that nobody has, and one for what is left of a GPU that is shared. Pure.
//
// Each row has a state of its own. A state that needs a person is in capitals, so that it stands
// out without colour too.
#pragma once

#include "cli/status/status_columns.h"
#include "cli/text/table.h"
#include "proto/methods.h"

#include <string>
#include <vector>

namespace gpurota::cli {

// As many cells as there are columns in each. Remarks about a GPU are in the first of its rows.
std::vector<std::vector<Cell>> status_rows(const proto::Status::Reply& reply, WallTime now);

// The word for a state of a GPU: the list of gpurota(1), STATES.
Cell state_cell(proto::GpuState state);
// Drivers say "NVIDIA" of every card of theirs.
std::string short_name(const std::string& name);
// Whether nobody has it but fillers: they go the moment somebody needs it.
bool only_fillers(const proto::Gpu& gpu, const proto::Status::Reply& reply);

}  // namespace gpurota::cli
