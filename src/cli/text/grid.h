// A screen of cells for a terminal (`gpurota top`, `gpurota history`): text with a style each.
// Pure: the layout draws on it, the terminal shows it, tests compare it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpurota::cli {

// The meaning of a cell, for which the terminal chooses a colour. Every meaning is also visible
// without colour.
enum class Tone : std::uint8_t {
  kPlain,
  kDim,
  kHead,
  kGood,
  kWarning,
  kBad,
  kSlice,
  kSwap,
  kFiller,
  kForeign,
  kGraph
};
inline constexpr std::size_t kTones = 11;

struct Style {
  Tone tone = Tone::kPlain;
  bool bold = false;
  bool reverse = false;
  bool operator==(const Style&) const = default;
};

struct GridCell {
  std::string text =
      " ";  // one character with its combining ones; empty: the second half of a wide one
  Style style{};
  bool operator==(const GridCell&) const = default;
};

class Grid {
 public:
  Grid(std::size_t width, std::size_t height)
      : width_(width), height_(height), cells_(width * height) {}

  std::size_t width() const { return width_; }
  std::size_t height() const { return height_; }
  const GridCell& at(std::size_t x, std::size_t y) const { return cells_[y * width_ + x]; }

  // `text` must be safe for a terminal already. A text longer than `most` columns, or than the
  // line, is cut with an ellipsis. Returns the column after it. Does nothing outside of the grid.
  std::size_t put(std::size_t x, std::size_t y, std::string_view text, Style style = {},
                  std::size_t most = SIZE_MAX);
  // Reverses a whole line: for the selected line, and for titles.
  void reverse_line(std::size_t y);
  // For terminals without UTF-8: replaces our special characters by ASCII, and all others by '?'.
  void make_ascii();

 private:
  std::size_t width_;
  std::size_t height_;
  std::vector<GridCell> cells_;
};

// The lines, without trailing spaces.
std::string plain_text(const Grid& grid);
// The same, with the escape codes of a terminal of eight colours.
std::string coloured_text(const Grid& grid);

}  // namespace gpurota::cli
