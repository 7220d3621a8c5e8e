// The daemon's messages to a swap tenant, as the helper thread takes them. Calls no CUDA function.
#pragma once

#include "interposer/account/state.h"
#include "interposer/os/socket.h"

namespace gpurota::interposer {

// A packet of the event socket whose type may be one of wire_swap.h's. False: it does not fit the
// protocol. `fds` came with it.
bool take_swap_order(State& s, const void* packet, long size, Descriptors* fds);

}  // namespace gpurota::interposer
