// Counts the work of the state thread before it returns to its event loop, in steps that do not
// depend on the machine's speed: so a test can say that no call takes more of them at a time than
// others may wait for (docs/design/control-protocol.md). Counted work calls add(); code that serves
// users' calls one at a time calls begin() and end() around each. Counting is of the thread that
// calls; most() may be asked on any.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace gpurota::steps {

enum class Kind : std::size_t { kEntries, kProcesses, kBytes };
inline constexpr std::size_t kKinds = 3;
using Counts = std::array<std::uint64_t, kKinds>;

// At a time: entries of tables that are gone through, processes that are looked up, bytes of
// answers that are made.
inline constexpr Counts kMost = {1024, 64, std::uint64_t{128} << 10};

void add(Kind kind, std::uint64_t count = 1);
void begin();
void end();
// Of each kind the most between a begin() and its end() so far.
Counts most();
void forget_most();

}  // namespace gpurota::steps
