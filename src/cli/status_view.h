// `gpurota status` as text: GPU by GPU, who has it and whether they may. Pure.
//
// One row for each lease on a GPU and for each use without one; a GPU that nobody has gets one row.
// Everything foreign is made safe by the table.
#pragma once

#include "cli/table.h"
#include "proto/methods.h"

#include <string>

namespace gpurota::cli {

std::string status_text(const proto::Status::Reply& reply, const Look& look, WallTime now);
// One line for the machine: how many GPUs, of which kinds, in which states.
std::string summary_text(const proto::Status::Reply& reply, const std::string& host,
                         const Look& look);

// The states as if the site's unreserved_threshold were `threshold`.
void apply_threshold(proto::Status::Reply& reply, Bytes threshold);

// "45s", "12m", "2h05m", "3d04h"; nothing negative.
std::string span_text(WallTime::duration span);

}  // namespace gpurota::cli
