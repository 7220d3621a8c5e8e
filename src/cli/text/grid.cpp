#include "cli/text/grid.h"

#include "base/text.h"
#include "cli/text/table.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace gpurota::cli {
namespace {

// The first character of `text`, with its combining characters.
std::string_view first_character(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size()) {
    std::size_t next = end + 1;
    while (next < text.size() && (static_cast<unsigned char>(text[next]) & 0xC0) == 0x80) ++next;
    if (end > 0 && display_width(text.substr(end, next - end)) > 0) break;
    end = next;
  }
  return text.substr(0, end);
}

using Replacement = std::pair<std::string_view, std::string_view>;
constexpr auto kAsciiFor = std::to_array<Replacement>(
    {{"█", "#"}, {"▓", "%"}, {"▒", "+"}, {"×", "x"}, {"░", "-"}, {"·", "."}, {"▁", "_"}, {"▂", "."},
     {"▃", ":"}, {"▄", "-"}, {"▅", "="}, {"▆", "+"}, {"▇", "*"}, {"…", "~"}, {"├", "|"}, {"└", "`"},
     {"─", "-"}, {"│", "|"}, {"┬", "+"}, {"▸", ">"}, {"↑", "^"}, {"↓", "v"}});

std::string_view ascii_for(std::string_view character) {
  for (const auto& [from, to] : kAsciiFor) {
    if (from == character) return to;
  }
  return "?";
}

const char* colour_code(Tone tone) {
  constexpr std::array<const char*, kTones> kCodes = {"",   "2",  "1",  "32", "33", "31",
                                                      "34", "35", "36", "33", "36"};
  return kCodes[static_cast<std::size_t>(tone)];
}

std::string code_of_style(const Style& style) {
  std::string code;
  for (const std::string_view part :
       {std::string_view(colour_code(style.tone)), std::string_view(style.bold ? "1" : ""),
        std::string_view(style.reverse ? "7" : "")}) {
    if (!part.empty()) code += fmt::format("{}{}", code.empty() ? "" : ";", part);
  }
  return code.empty() ? "" : "\033[" + code + "m";
}

// The column after the last visible cell.
std::size_t line_end(const Grid& grid, std::size_t y, bool styled) {
  std::size_t end = grid.width();
  while (end > 0 && grid.at(end - 1, y).text == " " &&
         !(styled && grid.at(end - 1, y).style.reverse)) {
    --end;
  }
  return end;
}

}  // namespace

std::size_t Grid::put(std::size_t x, std::size_t y, std::string_view text, Style style,
                      std::size_t most) {
  if (y >= height_ || x >= width_) return x;
  const std::string fitting = fit(std::string(text), std::min(most, width_ - x));
  for (std::string_view rest = fitting; !rest.empty();) {
    const std::string_view character = first_character(rest);
    const std::size_t columns = display_width(character);
    rest.remove_prefix(character.size());
    if (columns == 0) continue;  // a combining character without a base
    // Half of a wide character cannot stay.
    const std::size_t at = y * width_ + x;
    if (x > 0 && cells_[at].text.empty()) cells_[at - 1].text = " ";
    if (x + columns < width_ && cells_[at + columns].text.empty()) cells_[at + columns].text = " ";
    cells_[y * width_ + x] = {std::string(character), style};
    for (std::size_t i = 1; i < columns; ++i) cells_[y * width_ + x + i] = {"", style};
    x += columns;
  }
  return x;
}

void Grid::reverse_line(std::size_t y) {
  if (y >= height_) return;
  for (std::size_t x = 0; x < width_; ++x) cells_[y * width_ + x].style.reverse = true;
}

void Grid::make_ascii() {
  for (GridCell& cell : cells_) {
    if (cell.text.empty()) {
      cell.text = " ";
    } else if (static_cast<unsigned char>(cell.text.front()) >= 0x80) {
      cell.text = ascii_for(cell.text);
    } else {
      cell.text.resize(1);
    }
  }
}

std::string plain_text(const Grid& grid) {
  std::string text;
  for (std::size_t y = 0; y < grid.height(); ++y) {
    for (std::size_t x = 0; x < line_end(grid, y, false); ++x) text += grid.at(x, y).text;
    text += '\n';
  }
  return text;
}

std::string coloured_text(const Grid& grid) {
  std::string text;
  for (std::size_t y = 0; y < grid.height(); ++y) {
    Style now;
    for (std::size_t x = 0; x < line_end(grid, y, true); ++x) {
      const GridCell& cell = grid.at(x, y);
      if (!(cell.style == now)) text += "\033[0m" + code_of_style(cell.style);
      now = cell.style;
      text += cell.text;
    }
    text += now == Style{} ? "\n" : "\033[0m\n";
  }
  return text;
}

}  // namespace gpurota::cli
