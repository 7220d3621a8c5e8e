// Room for memory that moves, and the memory made in it, as one step.
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
// For `bytes` in whole pages. `split`: some of it here and some there will do.
Answer swap_get_room(int slot, uint64_t bytes, bool split, SwapRoom* out);
// Asks for room and, inside the gate, has `make(room, &kept)` make what it is for; `kept`: it needs
// the room. Room that no memory is in yet cannot be evicted, and the daemon would wait for it: so
// nobody stands at the gate with it, and what cannot be made at once is asked for again when memory
// is back. `refused(why)`: there is no room.
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
      const GatePass pass(GateClass::kResidency, nullptr, false, false);
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
