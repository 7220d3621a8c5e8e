// The table as text: one line for each cell, tab separated, sorted. If the value of a column makes
// no difference, one line with `any` in this column stands for all values. Pure.
#pragma once

#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace captures {

// The columns that identify a cell: function, aim, capture's mode, thread, thread's mode, capturing
// stream.
inline constexpr std::size_t kKeys = 6;
inline constexpr std::size_t kNamed = 2;  // the first ones, which are free text
using Key = std::vector<std::string>;
using Table = std::map<Key, std::string>;  // of each cell: result, end, outcome

// The possible values of the columns that are not free text, in print order.
extern const std::array<std::vector<std::string>, kKeys - kNamed> kValues;

std::string print(const Table& table);
// Skips lines that begin with # and lines that do not have the columns of the table.
Table parse(const std::string& text);
// The first word of each line, without lines that begin with #.
std::set<std::string> parse_names(const std::string& text);
// One line for each cell that differs or is in only one table, for functions that begin with
// `only`. Functions in `except` are left out; each of them that does not differ at all gets one
// line.
std::vector<std::string> compare(const Table& stored, const Table& measured,
                                 const std::string& only, const std::set<std::string>& except);

}  // namespace captures
