// Finds the names that a mistyped word may have meant. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gpurota {

// The number of letters left out, added, changed, or swapped with their neighbour.
std::size_t slips(std::string_view a, std::string_view b);

// The names with the fewest slips, if these are few enough for a typing error. A word of more than
// 64 letters matches none.
std::vector<std::string_view> nearest_names(std::string_view word,
                                            const std::vector<std::string_view>& names);

// The names that begin with `word`, without those that begin with another of them: "--mem" means
// --memory, not --memory-threshold.
std::vector<std::string_view> begun_names(std::string_view word,
                                          const std::vector<std::string_view>& names);

// The options among `names` that `word` ("--memry", "--mem") may mean; empty if there are too many.
std::vector<std::string_view> meant_names(std::string_view word,
                                          const std::vector<std::string_view>& names);

// ": did you mean 'release' or 'cancel'?", with each name between `quote`; empty if `meant` is
// empty.
std::string did_you_mean(const std::vector<std::string_view>& meant, std::string_view quote);

// The name from nearest_names() if there is exactly one, else empty.
std::string nearest_name(std::string_view word, const std::vector<std::string>& names);

}  // namespace gpurota
