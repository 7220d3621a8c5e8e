// The end of a call that a pool may have grown for. Any thread.
#pragma once

#include "interposer/memory/pool_charge.h"
#include "interposer/memory/reserve.h"

#include <cstdint>

namespace gpurota::interposer {

// Ends the call of `flight`, for which `taken` was reserved: charges the growth and gives the rest
// back. False if the pool has grown by more than `taken`, and the excess cannot be had. Only a
// thread that made the pool grow beyond its reserve gets false, whatever others have in flight.
bool settle(State& s, Pool& pool, int64_t taken, Flight* flight);

}  // namespace gpurota::interposer
