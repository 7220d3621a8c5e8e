// The picture that `gpurota history` draws on a terminal: for each GPU or lease its figures, and
// graphs of its load and its memory over time. Pure.
#pragma once

#include "cli/text/table.h"
#include "proto/methods.h"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::cli {

// How much memory GPUs have, which is as high as their graphs of memory are.
using GpuSizes = std::map<std::string, Bytes>;

// How wide the graphs are on a terminal of this width; 0: there is no room for any.
std::size_t graph_columns(std::size_t width);

// For a terminal that has room for graphs. The memory of a GPU whose size is not there, and of a
// lease, is drawn up to a round amount above the highest.
std::string graphs_text(const proto::History::Reply& reply, const Layout& style,
                        const GpuSizes& sizes);

// One value in each column of `count` columns of time; below zero: nothing is known.
struct TimedValue {
  WallTime begins;
  std::optional<double> share;  // of the height: 1 is all of it
};
std::vector<int> percentages_of(const std::vector<TimedValue>& values,
                                const proto::History::Reply& reply, std::size_t count);

// 1, 2, 4, … MiB: the first that is not below `amount`.
Bytes round_size(Bytes amount);

}  // namespace gpurota::cli
