// A table of text that fits a terminal. Pure: cells in, lines out.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gpurota::cli {

enum class Colour { kNone, kGreen, kYellow, kRed, kDim };

struct Cell {
  std::string text;  // made safe with display_text by the table
  Colour colour = Colour::kNone;
  std::size_t firm = 0;  // this many columns are never cut
};

struct Column {
  std::string title;
  bool right = false;     // numbers
  std::size_t least = 0;  // may be cut down to this many columns if the line is too long; 0: never
  std::size_t gap = 2;    // spaces in front of it
};

// How text is laid out for the terminal or file that stdout is.
struct Layout {
  std::size_t width = 0;  // of the terminal; 0: lines are not shortened
  bool colour = false;
  bool ascii = false;  // the terminal shows only ASCII
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // Takes one cell per column.
  void add(std::vector<Cell> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }
  // Whether any row has text in this column; false for a dropped column.
  bool has_text(std::size_t column) const;
  // Leaves a column out. Columns keep their numbers.
  void drop(std::size_t column) { dropped_.insert(column); }
  // The width of a line on which this column is cut to at most `enough`, and no other column is
  // cut.
  std::size_t width_with(std::size_t column, std::size_t enough) const;
  // Title line and rows, each ending with a newline. No trailing spaces.
  std::string render(const Layout& layout) const;

 private:
  std::vector<std::size_t> widths(std::size_t limit) const;
  // The least width of a column that may be cut.
  std::size_t least(std::size_t column) const;
  // The width of a line with columns of these widths.
  std::size_t line_width(const std::vector<std::size_t>& widths) const;

  bool shows(std::size_t column) const { return !dropped_.contains(column); }

  std::vector<Column> columns_;
  std::set<std::size_t> dropped_;
  std::vector<std::vector<Cell>> rows_;
};

// For terminals without UTF-8: replaces each other character by a similar one or by '?', of the
// same width.
std::string ascii_text(std::string_view text);
// `text` in `colour` if the layout has colours.
std::string paint(const std::string& text, Colour colour, const Layout& layout);
// `text` cut to `columns` terminal columns, with an ellipsis in the last one.
std::string fit(const std::string& text, std::size_t columns);

}  // namespace gpurota::cli
