// The picture that `gpurota history` draws on a terminal: for each GPU or lease its figures, and
// graphs of load and memory over time. Pure.
#pragma once

#include "cli/text/table.h"
#include "proto/methods.h"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::cli {

// The memory sizes of GPUs, which are the heights of their memory graphs.
using GpuSizes = std::map<std::string, Bytes>;

// The width of the graphs on a terminal of this width; 0: there is no room.
std::size_t graph_columns(std::size_t width);

// For a terminal with room for graphs. For a lease, and for a GPU without a known size, the memory
// graph's height is a round amount above the maximum.
std::string graphs_text(const proto::History::Reply& reply, const Layout& style,
                        const GpuSizes& sizes);

// One value for each of `count` columns of time; below zero: unknown.
struct TimedValue {
  WallTime begins;
  std::optional<double> share;  // of the height: 1 is full
};
std::vector<int> percentages_of(const std::vector<TimedValue>& values,
                                const proto::History::Reply& reply, std::size_t count);

// 1, 2, 4, … MiB: the first that is at least `amount`.
Bytes round_size(Bytes amount);

}  // namespace gpurota::cli
