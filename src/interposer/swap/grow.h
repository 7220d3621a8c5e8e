// A swap tenant's questions for memory, and how they are waited for. Any thread, outside the gate.
#pragma once

#include "abi/wire.h"
#include "interposer/account/answer.h"

#include <cstdint>

namespace gpurota::interposer {

// Others may take what was given back, again and again.
inline constexpr int kTriesForRoom = 16;

// Asks for memory and waits, for a turn if need be; while the daemon is away no longer than
// GPUROTA_WAIT_MS, counted from when it was missed. `granted` (may be nullptr): what a context is
// taken for; of a kNo, how much may be asked for as GPUROTA_SWAP_HOSTED, so that the rest fits.
Answer swap_grow(int slot, gpurota_swap_grow_kind kind, uint64_t bytes, uint64_t* granted);

}  // namespace gpurota::interposer
