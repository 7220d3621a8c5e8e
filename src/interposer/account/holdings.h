// Tells the daemon of memory that several processes have: which of its charges is for which memory
// (abi/wire_share.h).
//
// Within one lease a memory is counted once, however many of its processes have it. All of it is
// told again on each connection. Any thread; each call asks the daemon.
#pragma once

#include "interposer/account/answer.h"
#include "interposer/account/state.h"

#include <cstdint>

namespace gpurota::interposer {

// `bytes` of what is charged are this memory, from now on.
void hold_memory(int slot, uint64_t key, uint64_t bytes);
// To be called when this process has imported the memory. kYes: the lease has the memory already,
// and `bytes` of it are charged now (not in a swap lease). Else the memory must be asked for like
// any other; `bytes` is its size if the daemon knows the size, and 0 if not.
Answer join_memory(int slot, uint64_t key, uint64_t* bytes);
// Where what was charged for a memory is when it is left.
enum class Left {
  kCredited,  // in the headroom: it goes back from there
  // Charged still: it goes back with the message. In the headroom, another thread could take it
  // while the lease has the memory through another process or handle.
  kCharged,
};
// One charge less is this memory. kCharged is not for swap leases.
void leave_memory(int slot, uint64_t key, uint64_t bytes, Left left);
// With Link::mutex held, on a new connection: all of it.
void tell_holdings(State& s);

}  // namespace gpurota::interposer
