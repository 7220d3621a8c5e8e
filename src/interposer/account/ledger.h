// What is put back into the headroom, and what of it goes back to the daemon. Any thread.
#pragma once

#include "interposer/account/headroom.h"

#include <cstdint>

namespace gpurota::interposer {

// A free that leaves more than this gives the excess back: a program that is stopped or stuck
// cannot be asked for it.
inline constexpr int64_t kExcess = int64_t{1} << 30;

// Puts `bytes` back.
void put(int slot, int64_t bytes);

}  // namespace gpurota::interposer
