// The worker, the second thread of our own in a swap tenant, checks for work in flight and tells
// the daemon, evicts and restores, opens the gate, and prepares host memory. The worker calls CUDA
// functions in relaxed capture mode, but none that waits for work of the program.
#pragma once

#include "interposer/account/state.h"

namespace gpurota::interposer {

// Shuts the gate and starts the worker, once the first WELCOME says that the lease is a swap lease.
// With Link::mutex held. False: no thread could be started, so the lease cannot be used.
bool begin_swapping(State& s);

// Forgets what lived in a context that is gone or was reset. With GatePart::contexts_mutex held.
void swap_forget_context(CUcontext context);

}  // namespace gpurota::interposer
