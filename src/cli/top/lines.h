// Draws single lines of `gpurota top`: a GPU with its bars, and leases in columns. Pure.
#pragma once

#include "cli/text/grid.h"
#include "cli/top/rows.h"

#include <array>
#include <vector>

namespace gpurota::cli::topview {

Tone tone_of(Colour colour);

// The width of each column for leases; 0: no room, or nothing to show.
using Columns = std::array<std::size_t, kLeaseColumns>;
Columns columns_for(const std::vector<Row>& rows, std::size_t width);

void draw_titles(Grid& grid, std::size_t y, const Columns& columns);
void draw_row(Grid& grid, std::size_t y, const Row& row, const Columns& columns,
              const Model& model);

}  // namespace gpurota::cli::topview
