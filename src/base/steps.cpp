#include "base/steps.h"

#include <atomic>

namespace gpurota::steps {
namespace {

thread_local Counts counted{};
std::array<std::atomic<std::uint64_t>, kKinds> most_counted{};

}  // namespace

void add(Kind kind, std::uint64_t count) { counted[static_cast<std::size_t>(kind)] += count; }

void begin() { counted = {}; }

void end() {
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    const std::uint64_t before = most_counted[kind].load(std::memory_order_relaxed);
    if (counted[kind] > before) most_counted[kind].store(counted[kind], std::memory_order_relaxed);
  }
}

Counts most() {
  Counts counts{};
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    counts[kind] = most_counted[kind].load(std::memory_order_relaxed);
  }
  return counts;
}

void forget_most() {
  for (auto& count : most_counted) count.store(0, std::memory_order_relaxed);
}

}  // namespace gpurota::steps
