#include "base/memory_reserve.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

namespace gpurota::memory_reserve {
namespace {

std::array<std::atomic<void*>, kBlocks> g_blocks{};
std::atomic<bool> g_missing{false};  // a block is missing, or may be

// operator new calls this when malloc fails, and tries again when this returns.
void give_block() {
  g_missing = true;
  for (std::atomic<void*>& block : g_blocks) {
    if (void* const taken = block.exchange(nullptr)) return std::free(taken);
  }
  throw std::bad_alloc();
}

// Filled, so that the kernel provides the pages too.
void* make_block() {
  void* const made = std::malloc(kBlockBytes);
  return made ? std::memset(made, 1, kBlockBytes) : nullptr;
}

}  // namespace

void install() {
  std::set_new_handler(give_block);
  g_missing = true;
  (void)fill();
}

bool fill() {
  if (!g_missing.exchange(false)) return true;
  for (std::atomic<void*>& block : g_blocks) {
    if (block.load()) continue;
    void* const made = make_block();
    void* none = nullptr;
    if (!made) {
      g_missing = true;
      return false;
    }
    if (!block.compare_exchange_strong(none, made)) std::free(made);
  }
  return true;
}

bool is_full() { return !g_missing; }

}  // namespace gpurota::memory_reserve
