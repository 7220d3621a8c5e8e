// The second thread of our own in a swap tenant, the worker, looks whether anything is in flight
// and tells the daemon, evicts and restores, opens the gate, and has host memory ready. The worker
// calls CUDA functions, in relaxed capture mode; none that waits for work of the program's.
#pragma once

#include "interposer/account/state.h"

namespace gpurota::interposer {

// The first WELCOME says that the lease is a swap lease: shuts the gate and starts the worker. With
// Link::mutex held. False: no thread to be had; the lease cannot be used.
bool begin_swapping(State& s);

// A context is gone, or emptied: what was known in it is no more. With GatePart::contexts_mutex
// held.
void swap_forget_context(CUcontext context);

}  // namespace gpurota::interposer
