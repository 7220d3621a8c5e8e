// The tables of `gpurota history`: figures of GPUs and of leases over time. Pure.
#pragma once

#include "cli/text/table.h"
#include "proto/methods.h"

#include <string>

namespace gpurota::cli {

// A row for each GPU or lease: its averages and maxima.
std::string figures_text(const proto::History::Reply& reply, const Layout& style);
// A row for each step of each GPU or lease. All rows have the same number of words, even if values
// are unknown.
std::string steps_text(const proto::History::Reply& reply, const Layout& style);

}  // namespace gpurota::cli
