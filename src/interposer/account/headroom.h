// The headroom: the bytes that this process may still allocate on each GPU without asking the
// daemon. memory/reserve.cpp has what a request for memory does with it.
//
// granted = charged + headroom. Allocations take from the headroom before the driver is called and
// put it back when the driver fails or when they end; only the daemon's answers change `granted`.
// The word is private memory; the shared page only mirrors it. Any thread. Nothing here takes a
// lock or asks the daemon.
#pragma once

#include "interposer/account/state.h"

#include <cstdint>

namespace gpurota::interposer {

// Puts `bytes` back while the caller holds a lock; put(slot, 0) must follow (memory/reserve.h).
void credit_headroom(State& s, int slot, int64_t bytes);

// All headroom, out of the grant: to be given back. Zero if there is none.
int64_t surrender(State& s, int slot);
// Headroom above `keep`, out of the grant.
int64_t take_above(State& s, int slot, int64_t keep);
// As much headroom as there is, up to `most`, out of the grant.
int64_t surrender_some(State& s, int slot, int64_t most);
// A grant arrives, of which `used` is charged at once.
void receive_grant(State& s, int slot, int64_t granted, int64_t used);

}  // namespace gpurota::interposer
