// `gpurota status` as text: for each GPU, who has it and whether they may. Pure.
//
// Shows those parts of status_rows.h for which the terminal has room. User, state, lease, memory
// and end are never cut or left out; a column without text is left out. The table makes all
// untrusted text safe.
#pragma once

#include "cli/args/of_host.h"
#include "cli/status/status_columns.h"
#include "cli/text/table.h"
#include "proto/methods.h"

#include <string>
#include <vector>

namespace gpurota::cli {

using Hosts = std::vector<OfHost<proto::Status>>;

// For this machine, whose name is `host`.
std::string status_picture(const proto::Status::Reply& reply, const std::string& host,
                           const StatusForm& form, const Layout& layout, WallTime now);
// For several machines, in their order.
std::string hosts_picture(const Hosts& hosts, const StatusForm& form, const Layout& layout,
                          WallTime now);

// With the machines' names in the first column.
std::string hosts_status_text(const Hosts& hosts, const Layout& layout, WallTime now);
// One line for each machine: how many GPUs, in which states, of which models.
std::string hosts_summary_text(const Hosts& hosts, const Layout& layout);
// The chosen columns, in that order: a row for each lease, for each use without one, for each free
// GPU, and for the rest of a shared one. Memory is in GiB. Without titles, tabs separate the
// columns.
std::string chosen_text(const Hosts& hosts, const ChosenColumns& chosen, const Layout& layout,
                        WallTime now);

// Sets states and findings as if the site's unreserved_threshold were `threshold`.
void apply_threshold(proto::Status::Reply& reply, Bytes threshold);

}  // namespace gpurota::cli
