// The headroom: the bytes that this process may still allocate on each GPU without asking the
// daemon. memory/reserve.cpp describes how a request for memory uses the headroom.
//
// granted = charged + headroom. An allocation takes from the headroom before the driver is called,
// and puts the bytes back when the driver fails or when the allocation ends. Only the daemon's
// answers change `granted`. The counter is in private memory; the shared page only mirrors it. Any
// thread. Nothing here takes a lock or asks the daemon.
#pragma once

#include "interposer/account/state.h"

#include <cstdint>

namespace gpurota::interposer {

// Puts `bytes` back while the caller holds a lock; put(slot, 0) must follow (memory/reserve.h).
void credit_headroom(State& s, int slot, int64_t bytes);

// Takes all headroom out of the grant, to be given back to the daemon. Zero if there is none.
int64_t surrender(State& s, int slot);
// Takes the headroom above `keep` out of the grant.
int64_t take_above(State& s, int slot, int64_t keep);
// Takes at most `most` bytes of headroom out of the grant.
int64_t surrender_some(State& s, int slot, int64_t most);
// Adds a grant, of which `used` bytes are charged at once.
void receive_grant(State& s, int slot, int64_t granted, int64_t used);

}  // namespace gpurota::interposer
