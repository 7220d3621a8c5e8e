// A picture for a terminal (`gpurota top`, `gpurota history`): cells of text with a style each.
// Pure: drawn on by the layout, shown by the terminal, compared by tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpurota::cli {

// The meaning of a cell; the terminal chooses the colour. No meaning is shown by a tone alone.
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
      " ";  // one character with what combines with it; empty: the second half of a wide one
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

  // `text` is safe for a terminal already. A text that is longer than `most` columns, or than the
  // line, ends with an ellipsis. Returns the column behind it. Outside of the grid nothing happens.
  std::size_t put(std::size_t x, std::size_t y, std::string_view text, Style style = {},
                  std::size_t most = SIZE_MAX);
  // A whole line: what is chosen, and titles.
  void reverse_line(std::size_t y);
  // For terminals whose characters are not UTF-8: other characters for ours, and '?' for everybody
  // else's.
  void make_ascii();

 private:
  std::size_t width_;
  std::size_t height_;
  std::vector<GridCell> cells_;
};

// Lines without the spaces at their ends.
std::string plain_text(const Grid& grid);
// The same with the codes of a terminal of eight colours.
std::string coloured_text(const Grid& grid);

}  // namespace gpurota::cli
