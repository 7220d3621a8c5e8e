#include "cli/text/bars.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace gpurota::cli {
namespace {

constexpr int kLevels = 8;  // of one cell of a graph
constexpr std::array<const char*, kLevels + 1> kLevelCharacters = {" ", "▁", "▂", "▃", "▄",
                                                                   "▅", "▆", "▇", "█"};

}  // namespace

void draw_bar(Grid& grid, std::size_t x, std::size_t y, std::size_t columns, Bytes whole,
              const std::vector<BarPart>& parts) {
  if (columns < 3) return;
  const std::size_t inside = columns - 2;
  grid.put(x, y, "[", {Tone::kDim});
  std::size_t at = 0;
  for (const BarPart& part : parts) {
    if (part.amount.is_zero() || whole.is_zero()) continue;
    const double share =
        static_cast<double>(part.amount.count()) / static_cast<double>(whole.count());
    const auto wide = static_cast<std::size_t>(
        std::max(1L, std::lround(std::min(share, 1.0) * static_cast<double>(inside))));
    for (std::size_t i = 0; i < wide && at < inside; ++i, ++at) {
      grid.put(x + 1 + at, y, part.character, {part.tone});
    }
  }
  for (; at < inside; ++at) grid.put(x + 1 + at, y, "·", {Tone::kDim});
  grid.put(x + columns - 1, y, "]", {Tone::kDim});
}

void draw_graph(Grid& grid, std::size_t x, std::size_t y, std::size_t columns, std::size_t rows,
                const std::vector<int>& percentages, Tone tone) {
  const std::size_t shown = std::min(columns, percentages.size());
  const std::size_t first = percentages.size() - shown;
  for (std::size_t i = 0; i < shown; ++i) {
    const int percent = percentages[first + i];
    if (percent < 0) continue;
    const int levels = kLevels * static_cast<int>(rows);
    // A sample without load has a mark, too, to show that it was taken.
    const int high = std::clamp((percent * levels + 50) / 100, 1, levels);
    for (std::size_t row = 0; row < rows; ++row) {
      const int below = kLevels * static_cast<int>(rows - 1 - row);
      const int level = std::clamp(high - below, 0, kLevels);
      if (level == 0) continue;
      grid.put(x + columns - shown + i, y + row, kLevelCharacters[static_cast<std::size_t>(level)],
               {tone});
    }
  }
}

}  // namespace gpurota::cli
