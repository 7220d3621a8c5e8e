// Memory of another process that this one has opened by a handle of ours: the opener's side of
// abi/wire_share.h. The owner's side is share.h. Used in any lease with a limit; the state is a
// part of Swap.
//
// The memory counts for its owner, and also for the opener's lease if the owner is in another lease
// (memory/imports.h). Here the memory is mapped at one address for each context, however often it
// is opened.
#pragma once

#include "interposer/account/state.h"
#include "interposer/swap/opened_memory.h"

#include <cstdint>

namespace gpurota::interposer {

// Finds the memory that `address` lies in. Any thread.
bool find_opened(State& s, uint64_t address, Opened* out);
// Ends memory that was opened in a context that is gone.
void end_opened_in(State& s, uint32_t serial);

}  // namespace gpurota::interposer
