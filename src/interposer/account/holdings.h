// What the daemon is told of memory that several processes have: which of its charges is of which
// memory (abi/wire_share.h).
//
// Within one lease a memory is counted once, however many of its processes have it. Told again on
// each connection. Any thread; each call asks the daemon.
#pragma once

#include "interposer/account/answer.h"
#include "interposer/account/state.h"

#include <cstdint>

namespace gpurota::interposer {

// `bytes` of what is charged are this memory, from now on.
void hold_memory(int slot, uint64_t key, uint64_t bytes);
// This process has imported it. kYes: the lease has it already, and `bytes` of it are charged now
// (not in a swap lease). Else it is to be asked for like any other; `bytes` is its size if the
// daemon knows it, and 0 if not.
Answer join_memory(int slot, uint64_t key, uint64_t* bytes);
// One charge less is this memory. It is in the headroom by now, and goes back from there with the
// message.
void leave_memory(int slot, uint64_t key, uint64_t bytes);
// With Link::mutex held, on a new connection: all of it.
void tell_holdings(State& s);

}  // namespace gpurota::interposer
