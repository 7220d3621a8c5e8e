// What `gpurota history` shows: figures of GPUs and of leases over time. Pure.
#pragma once

#include "cli/text/table.h"
#include "proto/methods.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::cli {

// A row for each GPU or lease, with a graph where `graphs` says that the terminal has the
// characters for one.
std::string figures_text(const proto::History::Reply& reply, const Look& look, bool graphs);

// One character for each: how high it is, 100 at the most. Empty: a space.
std::string graph_text(const std::vector<std::optional<int>>& percentages);

}  // namespace gpurota::cli
