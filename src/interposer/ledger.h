// What this process may still allocate on each GPU, without asking.
//
// granted = charged + headroom. Allocations take from the headroom before the driver is called and
// put it back when it fails or when they end; only the daemon's answers change `granted`. The word
// is private memory; the shared page only mirrors it. Any thread, no locks here; a refusal may take
// reserve() 200 ms.
#pragma once

#include "interposer/state.h"

#include <cstdint>

namespace gpurota::interposer {

// What the ledger asks for beyond the need, so that small allocations rarely ask.
inline constexpr uint64_t kGrantPiece = uint64_t{64} << 20;
// A free that leaves more than this gives the excess back: a program that is stopped or stuck cannot
// be asked for it.
inline constexpr int64_t kExcess = int64_t{1} << 30;

// Takes `bytes` from the headroom if they are there.
bool take(State& s, int slot, int64_t bytes);

class Flight;

// take(), and else asks the daemon, and else gets back what idle pools hold, and what others have under way and
// will not keep. `own`: the flight that it is for. False: refused.
bool reserve(int slot, int64_t bytes, Flight* own = nullptr);

// Puts `bytes` back.
void put(int slot, int64_t bytes);
// The first half of it, under a lock: put(slot, 0) is to follow.
void credit_headroom(State& s, int slot, int64_t bytes);

// All headroom, out of the grant: to be given back. Zero if there is none.
int64_t surrender(State& s, int slot);
// More was granted than the lease's limit is by now: what is freed is given back at once.
bool above_limit(const State& s, int slot);
// Headroom above `keep`, out of the grant.
int64_t take_above(State& s, int slot, int64_t keep);
// A grant arrives, of which `used` is charged at once.
void receive_grant(State& s, int slot, int64_t granted, int64_t used);

// Counts a refusal for the page and says it under GPUROTA_DEBUG.
CUresult refuse(int slot, uint64_t bytes);

}  // namespace gpurota::interposer
