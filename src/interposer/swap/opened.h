// Memory of another process that this one has opened by a handle of ours: the opener's side of
// abi/wire_share.h; the owner's is share.h. In any lease with a limit; a part of Swap.
//
// The memory is its owner's, and counts for the owner, and for the opener's lease if that is
// another (memory/imports.h). Here it is mapped, at one place for a context however often it is
// opened.
#pragma once

#include "interposer/account/state.h"
#include "interposer/swap/opened_memory.h"

#include <cstdint>

namespace gpurota::interposer {

// Finds the memory that `address` lies in. Any thread.
bool find_opened(State& s, uint64_t address, Opened* out);
// The context is gone, and with it what was opened there.
void end_opened_in(State& s, uint32_t serial);

}  // namespace gpurota::interposer
