// Bars and graphs of characters. Each part of a bar has a character of its own, not only a colour.
// Pure.
#pragma once

#include "base/bytes.h"
#include "cli/text/grid.h"

#include <cstddef>
#include <vector>

namespace gpurota::cli {

struct BarPart {
  Bytes amount;
  const char* character;
  Tone tone;
};

// Draws `parts` of `whole` beginning at column `x`, between brackets: `columns` in all, at least 3.
// Dots fill the rest. A part that is not zero has at least one column where there is room.
void draw_bar(Grid& grid, std::size_t x, std::size_t y, std::size_t columns, Bytes whole,
              const std::vector<BarPart>& parts);

// Percentages, newest last, aligned to the right; below zero: not known. `rows` high; `y` is the
// top row.
void draw_graph(Grid& grid, std::size_t x, std::size_t y, std::size_t columns, std::size_t rows,
                const std::vector<int>& percentages, Tone tone);

}  // namespace gpurota::cli
