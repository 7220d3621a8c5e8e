// The daemon's messages to a swap tenant, as the helper thread takes them. Calls no CUDA function.
#pragma once

#include "interposer/account/state.h"
#include "interposer/os/socket.h"

namespace gpurota::interposer {

// Takes a packet of the event socket whose type may be one of wire_swap.h's. `fds` came with the
// packet. False: the packet does not fit the protocol.
bool take_swap_order(State& s, const void* packet, long size, Descriptors* fds);

// The worker looks for what has changed.
void poke_worker(State& s);

}  // namespace gpurota::interposer
