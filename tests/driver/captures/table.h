// The table as text: one line for each cell, tab separated, sorted; where a column makes no
// difference its values are one line with `any`. Pure.
#pragma once

#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace captures {

// Those that tell cells apart: function, aim, capture's mode, thread, thread's mode, capturing
// stream.
inline constexpr std::size_t kKeys = 6;
inline constexpr std::size_t kNamed = 2;  // of which these are free text
using Key = std::vector<std::string>;
using Table = std::map<Key, std::string>;  // of each cell: result, end, outcome

// The values of the other four, in the order in which they are printed.
extern const std::array<std::vector<std::string>, kKeys - kNamed> kValues;

std::string print(const Table& table);
// Lines that begin with # are skipped, as are those that are none of a table.
Table parse(const std::string& text);
// The first word of each line; as above of those with #.
std::set<std::string> parse_names(const std::string& text);
// A line for each cell that differs or is in one of the two only; of functions that begin with
// `only`. Not of those in `except`, but one for each of them that does not differ at all.
std::vector<std::string> compare(const Table& stored, const Table& measured,
                                 const std::string& only, const std::set<std::string>& except);

}  // namespace captures
