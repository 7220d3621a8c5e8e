// A reserve of memory for when there is none. Memory that operator new cannot get is taken from
// here, so that work that has begun is finished; code that begins new work asks first (is_full) and
// refuses it if the reserve is not full. Any thread.
//
// The reserve is kept in small blocks, which are given back to malloc one by one. With the last of
// them gone operator new throws.
#pragma once

#include <cstddef>

namespace gpurota::memory_reserve {

inline constexpr std::size_t kBlocks = 128;
inline constexpr std::size_t kBlockBytes = std::size_t{32} << 10;

// From here on it serves this process. The event loop fills it up between its rounds.
void install();
// Puts aside what is missing; false if it cannot. Costs next to nothing while nothing is missing.
bool fill();
// True where it is not installed.
bool is_full();

}  // namespace gpurota::memory_reserve
