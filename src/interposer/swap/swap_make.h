// Gets room for memory that moves and makes the memory, as one step.
#pragma once

#include "interposer/gate/gated.h"
#include "interposer/swap/grants.h"

#include <cstdint>

namespace gpurota::interposer {

// Room for an allocation.
struct SwapRoom {
  uint64_t movable;
  uint64_t hosted;  // in host memory, for good (oversize.cpp)
};
// Gets room for `bytes`, which are rounded up to whole pages. `split`: the memory may be partly in
// GPU memory and partly in host memory.
Answer swap_get_room(int slot, uint64_t bytes, bool split, SwapRoom* out);
// Asks for room and, inside the gate, calls `make(room, &kept)` to make the memory. `make` sets
// `kept` if the memory takes the room; otherwise the room is given back.
//
// Unused room cannot be evicted, and the daemon would wait for it. So no thread waits at the gate
// with room: if the gate cannot be passed at once, the room is given back, and asked for again when
// memory is back. `refused(why)`: there is no room.
template <typename Make, typename Refused>
CUresult swap_make(int slot, uint64_t bytes, bool split, Make make, Refused refused) {
  for (;;) {
    SwapRoom room{};
    const Answer answer = swap_get_room(slot, bytes, split, &room);
    if (answer != Answer::kYes) return refused(answer);
    bool kept = false;
    bool passed = false;
    CUresult result = kNotLet;
    {
      const GatePass pass(GateClass::kResidency, nullptr, false, GatePass::Kind::kImpatient);
      passed = !pass.refused();
      if (passed) result = make(room, &kept);
    }
    if (!kept) swap_shrink(slot, room.movable, 0, 0, room.hosted);
    if (passed) return result;
    const GatePass back(GateClass::kResidency, nullptr, false);
    if (back.refused()) return result;
  }
}

}  // namespace gpurota::interposer
