#include "cli/text/table.h"

#include "base/text.h"

#include <algorithm>
#include <array>
#include <utility>

namespace gpurota::cli {
namespace {

constexpr std::size_t kLongestCell = 200;

const char* code_of(Colour colour) {
  switch (colour) {
    case Colour::kNone:
      return "";
    case Colour::kGreen:
      return "\033[32m";
    case Colour::kYellow:
      return "\033[33m";
    case Colour::kRed:
      return "\033[31m";
    case Colour::kDim:
      return "\033[2m";
  }
  return "";
}

std::size_t code_point_size(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead < 0xE0) return 2;
  return lead < 0xF0 ? 3 : 4;
}

}  // namespace

std::string ascii_text(std::string_view text) {
  using Pair = std::pair<std::string_view, char>;
  constexpr std::array<Pair, 12> kAlike = {{{"…", '.'},
                                            {"·", '.'},
                                            {"→", '>'},
                                            {"–", '-'},
                                            {"—", '-'},
                                            {"×", 'x'},
                                            {"’", '\''},
                                            {"‘", '\''},
                                            {"“", '"'},
                                            {"”", '"'},
                                            {"█", '#'},
                                            {"▓", '#'}}};
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view piece =
        text.substr(at, code_point_size(static_cast<unsigned char>(text[at])));
    at += piece.size();
    const auto* const alike = std::find_if(kAlike.begin(), kAlike.end(),
                                           [&](const Pair& each) { return each.first == piece; });
    if (piece.size() == 1) {
      out += piece;
    } else if (alike != kAlike.end()) {
      out += alike->second;
    } else {
      out.append(display_width(piece), '?');
    }
  }
  return out;
}

std::string paint(const std::string& text, Colour colour, const Layout& layout) {
  if (!layout.colour || colour == Colour::kNone || text.empty()) return text;
  return code_of(colour) + text + "\033[0m";
}

std::string fit(const std::string& text, std::size_t columns) {
  if (display_width(text) <= columns) return text;
  if (columns == 0) return "";
  std::string out;
  std::size_t used = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::string piece =
        text.substr(at, code_point_size(static_cast<unsigned char>(text[at])));
    const std::size_t width = display_width(piece);
    if (used + width > columns - 1) break;
    out += piece;
    used += width;
    at += piece.size();
  }
  return out + "…";
}

bool Table::has_text(std::size_t column) const {
  return shows(column) && std::any_of(rows_.begin(), rows_.end(),
                                      [&](const auto& row) { return !row[column].text.empty(); });
}

std::size_t Table::least(std::size_t column) const {
  std::size_t least = columns_[column].least;
  for (const auto& row : rows_) {
    const Cell& cell = row[column];
    // One column more for the ellipsis if the text is longer.
    const std::size_t width = display_width(display_text(cell.text, kLongestCell));
    if (cell.firm > 0) least = std::max(least, std::min(width, cell.firm + 1));
  }
  return least;
}

std::size_t Table::line_width(const std::vector<std::size_t>& widths) const {
  std::size_t total = 0;
  bool first = true;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (!shows(i)) continue;
    total += widths[i] + (first ? 0 : columns_[i].gap);
    first = false;
  }
  return total;
}

std::size_t Table::width_with(std::size_t column, std::size_t enough) const {
  std::vector<std::size_t> wide = widths(0);
  wide[column] = std::min(wide[column], enough);
  return line_width(wide);
}

std::vector<std::size_t> Table::widths(std::size_t limit) const {
  std::vector<std::size_t> widths, least_of;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = shows(i) ? display_width(columns_[i].title) : 0;
    for (const auto& row : rows_) {
      if (!shows(i)) break;
      width = std::max(width, display_width(display_text(row[i].text, kLongestCell)));
    }
    widths.push_back(width);
    least_of.push_back(columns_[i].least > 0 ? least(i) : width);
  }
  // The widest column that may shrink shrinks first.
  for (std::size_t total = line_width(widths); limit > 0 && total > limit; --total) {
    std::size_t widest = columns_.size();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const bool may = widths[i] > least_of[i];
      if (may && (widest == columns_.size() || widths[i] > widths[widest])) widest = i;
    }
    if (widest == columns_.size()) break;
    --widths[widest];
  }
  return widths;
}

std::string Table::render(const Layout& layout) const {
  const std::vector<std::size_t> widths_of = widths(layout.width);
  const auto line = [&](auto text_of, auto colour_of) {
    std::string out;
    std::size_t owed = 0;  // spaces before the next cell that is not empty
    bool first = true;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (!shows(i)) continue;
      const std::string text = fit(display_text(text_of(i), kLongestCell), widths_of[i]);
      const std::size_t pad = widths_of[i] - display_width(text);
      if (!first) owed += columns_[i].gap;
      first = false;
      if (columns_[i].right) owed += pad;
      if (!text.empty()) {
        out.append(owed, ' ');
        out += paint(text, colour_of(i), layout);
        owed = 0;
      }
      if (!columns_[i].right) owed += pad;
    }
    return out + "\n";
  };
  std::string out = line([&](std::size_t i) { return columns_[i].title; },
                         [](std::size_t) { return Colour::kDim; });
  for (const auto& row : rows_) {
    out += line([&](std::size_t i) { return row[i].text; },
                [&](std::size_t i) { return row[i].colour; });
  }
  return layout.ascii ? ascii_text(out) : out;
}

}  // namespace gpurota::cli
