// The details that `gpurota top` shows of one GPU, lease or request after Enter, with a graph of
// the last minutes; and its help. Pure.
#pragma once

#include "cli/text/grid.h"
#include "cli/top/state.h"

namespace gpurota::cli::topview {

// Draws in `room` lines, beginning at line `y`.
void draw_details(Grid& grid, std::size_t y, std::size_t room, const Model& model,
                  const Subject& about);
void draw_help(Grid& grid, std::size_t y, std::size_t room);

}  // namespace gpurota::cli::topview
