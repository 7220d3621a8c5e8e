// A reserve of memory for when malloc fails. operator new then takes memory from the reserve, so
// that work already begun can finish. Code that begins new work calls is_full first, and refuses
// the work if the reserve is not full. Any thread.
//
// The reserve consists of small blocks, which are given back to malloc one by one. When no block is
// left, operator new throws.
#pragma once

#include <cstddef>

namespace gpurota::memory_reserve {

inline constexpr std::size_t kBlocks = 128;
inline constexpr std::size_t kBlockBytes = std::size_t{32} << 10;

// Installs the reserve in this process. The event loop refills it between its rounds.
void install();
// Refills the reserve; false if memory is lacking. Almost free while nothing is missing.
bool fill();
// Also true where no reserve is installed.
bool is_full();

}  // namespace gpurota::memory_reserve
