#include "interposer/swap/allocations.h"

#include "interposer/gate/gated.h"
#include "interposer/memory/linear.h"
#include "interposer/memory/reserve.h"
#include "interposer/os/debug.h"
#include "interposer/swap/grants.h"
#include "interposer/swap/grow.h"
#include "interposer/swap/tenant.h"

namespace gpurota::interposer {

// First asks the daemon for the same number of bytes as wired memory, then gives the bytes back as
// movable memory. Between the two steps the memory counts twice. In the opposite order there would
// be a moment when the memory does not count at all.
CUresult swap_wire(State& s, int slot, uint64_t address) {
  SwapSpace& space = swap_of(s).devices[slot].space;
  SwapBacking backing{};
  if (!space.find_backing(address, &backing)) return CUDA_ERROR_INVALID_VALUE;
  if (backing.hosted != 0) return refuse(slot, backing.hosted, Answer::kNo);
  const uint64_t asked = backing.movable;
  if (asked == 0) return CUDA_SUCCESS;
  const Answer answer = swap_grow(slot, GPUROTA_SWAP_WIRED, asked, nullptr);
  if (answer != Answer::kYes) return refuse(slot, asked, answer);
  uint64_t stays = 0;
  bool passed = false;
  {
    const GatePass pass(GateClass::kResidency, nullptr, false);
    passed = !pass.refused();
    if (passed) stays = space.wire(address);
  }
  swap_shrink(slot, stays, 0, asked - stays);
  GPUROTA_DEBUG("slot %d: %llu bytes that the program has given away do not move any more", slot,
                static_cast<unsigned long long>(stays));
  return passed ? CUDA_SUCCESS : kNotLet;
}

bool swap_find(State& s, uint64_t address, SwapFound* out) {
  for (uint32_t slot = 0; slot < s.link.slot_count; ++slot) {
    SwapDevice& device = swap_of(s).devices[slot];
    FoundRange range{};
    if (device.ready.load(std::memory_order_acquire) == 0) continue;
    if (!device.space.find(address, &range)) continue;
    if (!find_allocation(s, range.address, &out->allocation)) return false;  // freed, not ended
    out->base = range.address;
    return address < range.address + out->allocation.size;
  }
  return false;
}

bool swap_moves(State& s, uint64_t address) {
  SwapFound found;
  return swap_find(s, address, &found);
}

}  // namespace gpurota::interposer
