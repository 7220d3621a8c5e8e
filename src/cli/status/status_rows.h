// The rows of `gpurota status`: one for each lease on a GPU, for each use without one, for each
// free GPU, and for the rest of each shared GPU. Pure.
//
// Each row has a state of its own. A state that needs a person's attention is in capitals, to be
// visible without colour.
#pragma once

#include "cli/status/status_columns.h"
#include "cli/text/table.h"
#include "proto/methods.h"

#include <string>
#include <vector>

namespace gpurota::cli {

// Each row has one cell per column. Remarks about a GPU are in the first of its rows.
std::vector<std::vector<Cell>> status_rows(const proto::Status::Reply& reply, WallTime now);

// The word for a state of a GPU, as listed in gpurota(1), STATES.
Cell state_cell(proto::GpuState state);
// Without "NVIDIA", with which the driver begins every name.
std::string short_name(const std::string& name);
// Whether anybody can have the GPU: its leases are fillers, which leave as soon as somebody needs
// it, or parked.
bool has_whole_room(const proto::Gpu& gpu, const proto::Status::Reply& reply);

}  // namespace gpurota::cli
