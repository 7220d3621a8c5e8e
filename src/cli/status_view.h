// `gpurota status` as text: GPU by GPU, who has it and whether they may. Pure.
//
// The rows are those of status_rows.h; here is what of them a terminal has room for. User, state, lease, memory and end are
// never cut or left out; a column that has nothing to say is not there. Everything foreign is made safe by the table.
#pragma once

#include "cli/of_host.h"
#include "cli/table.h"
#include "proto/methods.h"

#include <string>
#include <vector>

namespace gpurota::cli {

std::string status_text(const proto::Status::Reply& reply, const Look& look, WallTime now);
// Of several machines: in their order, with their names in the first column.
std::string hosts_status_text(const std::vector<OfHost<proto::Status>>& hosts, const Look& look,
                              WallTime now);
// One line for the machine: how many GPUs, in which states, of which kinds.
std::string summary_text(const proto::Status::Reply& reply, const std::string& host,
                         const Look& look);
std::string hosts_summary_text(const std::vector<OfHost<proto::Status>>& hosts, const Look& look);

// The states and findings as if the site's unreserved_threshold were `threshold`.
void apply_threshold(proto::Status::Reply& reply, Bytes threshold);

}  // namespace gpurota::cli
