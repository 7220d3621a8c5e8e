// The end of a call that a pool may have grown for. Any thread.
#pragma once

#include "interposer/memory/pool_charge.h"
#include "interposer/memory/reserve.h"

#include <cstdint>

namespace gpurota::interposer {

// Ends a call, of `flight`, before which `taken` was reserved: charges the growth,
// gives the rest back. False if the pool has grown by more than was taken and than can be had: only
// who made it grow beyond its reserve is told, whatever others have in flight.
bool settle(State& s, Pool& pool, int64_t taken, Flight* flight);

}  // namespace gpurota::interposer
