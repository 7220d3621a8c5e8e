// Tells the daemon which of this process's charges are for memory that several processes have
// (abi/wire_share.h).
//
// Within one lease such memory is counted once, however many of the lease's processes have it.
// Everything is sent again on each new connection. Any thread; each call asks the daemon.
#pragma once

#include "interposer/account/answer.h"
#include "interposer/account/state.h"

#include <cstdint>

namespace gpurota::interposer {

// Records that `bytes` of this process's charges are for this memory.
void hold_memory(int slot, uint64_t key, uint64_t bytes);
// Call when this process has imported the memory. kYes: the lease has the memory already, and
// `bytes` of it are charged now (not in a swap lease). Otherwise the memory must be asked for like
// any other; `bytes` is its size if the daemon knows the size, and 0 if not.
Answer join_memory(int slot, uint64_t key, uint64_t* bytes);
// Where the charged bytes are when the process gives up the memory.
enum class Left {
  kCredited,  // in the headroom, from which it goes back to the daemon
  // Still charged: the bytes go back with the message. If they were in the headroom, another thread
  // could take them although the lease still has the memory through another process or handle.
  kCharged,
};
// Ends one charge for this memory. kCharged is not for swap leases.
void leave_memory(int slot, uint64_t key, uint64_t bytes, Left left);
// Tells the daemon everything on a new connection. With Link::mutex held.
void tell_holdings(State& s);

}  // namespace gpurota::interposer
