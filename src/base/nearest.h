// The names that a mistyped word was meant to be. Pure.
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

// Those that `word` begins; of these not those that another of them begins: "--mem" is meant for
// --memory, not for --memory-threshold.
std::vector<std::string_view> begun_names(std::string_view word,
                                          const std::vector<std::string_view>& names);

// The options of `names` that `word` ("--memry", "--mem") is meant for; none where it could be any
// of many.
std::vector<std::string_view> meant_names(std::string_view word,
                                          const std::vector<std::string_view>& names);

// ": did you mean 'release' or 'cancel'?", each within `quote`; empty if there is none.
std::string did_you_mean(const std::vector<std::string_view>& meant, std::string_view quote);

// The only one of nearest_names(); empty: none, or several.
std::string nearest_name(std::string_view word, const std::vector<std::string>& names);

}  // namespace gpurota
