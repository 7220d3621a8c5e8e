// What this process may still allocate on each GPU, without asking.
//
// granted = charged + headroom. Allocations take from the headroom before the driver is called and
// put it back when it fails or when they end; only the daemon's answers change `granted`. The word
// is private memory; the shared page only mirrors it. Any thread, no locks here, nobody is asked
// (ledger.h, memory/reserve.h).
#pragma once

#include "interposer/account/state.h"

#include <cstdint>

namespace gpurota::interposer {

// Takes `bytes` from the headroom if they are there.
bool take(State& s, int slot, int64_t bytes);
// Puts `bytes` back, under a lock; put(slot, 0) is to follow (ledger.h).
void credit_headroom(State& s, int slot, int64_t bytes);

// All headroom, out of the grant: to be given back. Zero if there is none.
int64_t surrender(State& s, int slot);
// Headroom above `keep`, out of the grant.
int64_t take_above(State& s, int slot, int64_t keep);
// As much headroom as there is, up to `most`, out of the grant.
int64_t surrender_some(State& s, int slot, int64_t most);
// A grant arrives, of which `used` is charged at once.
void receive_grant(State& s, int slot, int64_t granted, int64_t used);

// More than the lease is to have at all; where that is not known nothing is.
bool beyond_limit(const State& s, int slot, int64_t bytes);
// More was granted than the lease's limit is by now: what is freed is given back at once.
bool above_limit(const State& s, int slot);

}  // namespace gpurota::interposer
