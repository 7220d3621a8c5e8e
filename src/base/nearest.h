// What a mistyped word was meant to be. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gpurota {

// How many letters were left out, added, changed, or swapped with their neighbour.
std::size_t slips(std::string_view a, std::string_view b);

// Those of `names` with the fewest slips, if these are few enough for a mistyped word. A word of
// more than 64 letters is none.
std::vector<std::string_view> nearest_names(std::string_view word,
                                            const std::vector<std::string_view>& names);

// The only such name; empty: none, or several.
std::string nearest_name(std::string_view word, const std::vector<std::string>& names);

}  // namespace gpurota
