// Counts the work of the state thread until it returns to its event loop, in steps that do not
// depend on the machine's speed. So a test can check that no call makes others wait for more steps
// than is allowed (docs/design/control-protocol.md). Counted work calls add(); code that serves
// users' calls one at a time calls begin() and end() around each. Each thread counts its own steps;
// any thread may call most().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace gpurota::steps {

enum class Kind : std::size_t { kEntries, kProcesses, kBytes };
inline constexpr std::size_t kKinds = 3;
using Counts = std::array<std::uint64_t, kKinds>;

// Limits between begin() and end(): table entries walked, processes looked up, bytes of answers
// made.
inline constexpr Counts kMost = {1024, 64, std::uint64_t{128} << 10};

void add(Kind kind, std::uint64_t count = 1);
void begin();
void end();
// The highest count of each kind so far between a begin() and its end().
Counts most();
void forget_most();

}  // namespace gpurota::steps
