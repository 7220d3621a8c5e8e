// `gpurota status` as text: GPU by GPU, who has it and whether they may. Pure.
//
// The rows are those of status_rows.h; here is what of them a terminal has room for. User, state,
// lease, memory and end are never cut or left out; a column that has nothing to say is not there.
// Everything foreign is made safe by the table.
#pragma once

#include "cli/args/of_host.h"
#include "cli/status/status_columns.h"
#include "cli/text/table.h"
#include "proto/methods.h"

#include <string>
#include <vector>

namespace gpurota::cli {

using Hosts = std::vector<OfHost<proto::Status>>;

// Of this machine, which calls itself `host`.
std::string status_picture(const proto::Status::Reply& reply, const std::string& host,
                           const StatusForm& form, const Layout& layout, WallTime now);
// Of several machines, in their order.
std::string hosts_picture(const Hosts& hosts, const StatusForm& form, const Layout& layout,
                          WallTime now);

// With the machines' names in the first column.
std::string hosts_status_text(const Hosts& hosts, const Layout& layout, WallTime now);
// One line for a machine: how many GPUs, in which states, of which kinds.
std::string hosts_summary_text(const Hosts& hosts, const Layout& layout);
// The columns that somebody chose, in that order: a row for each lease, for each use without one,
// for a GPU that nobody has and for what is left of a shared one. Memory is in GiB. Without titles
// there is a tab between columns.
std::string chosen_text(const Hosts& hosts, const ChosenColumns& chosen, const Layout& layout,
                        WallTime now);

// The states and findings as if the site's unreserved_threshold were `threshold`.
void apply_threshold(proto::Status::Reply& reply, Bytes threshold);

}  // namespace gpurota::cli
