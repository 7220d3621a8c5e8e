// Draws the picture of `gpurota top`, of any size. Pure.
#pragma once

#include "cli/text/grid.h"
#include "cli/top/state.h"

#include <string>

namespace gpurota::cli::topview {

struct Frame {
  std::size_t width = 80;
  std::size_t height = 24;
  WallTime now{};
  std::string host{};
  bool live = false;  // with keys, and a chosen line
};

Grid draw(const Model& model, const State& state, const Frame& frame);
// The number of lines in which everything fits.
std::size_t whole_height(const Model& model, const State& state);
// The subjects of the lines that can be chosen, in order.
std::vector<Subject> subjects(const Rows& rows);

}  // namespace gpurota::cli::topview
