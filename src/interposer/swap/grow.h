// A swap tenant's requests for memory, and the wait for their answers. Any thread, outside the
// gate.
#pragma once

#include "abi/wire.h"
#include "interposer/account/answer.h"

#include <cstdint>

namespace gpurota::interposer {

// The most attempts to get room: each time, others may take the room that was given back.
inline constexpr int kTriesForRoom = 16;

// Asks for memory and waits for the answer, for a turn if need be. While the daemon is away, the
// wait ends GPUROTA_WAIT_MS after the daemon was missed.
//
// `granted` (may be nullptr): after kYes, the bytes that were granted; for a context only the
// daemon knows this number beforehand. After kNo, the bytes to ask for as GPUROTA_SWAP_HOSTED, so
// that the rest fits on the GPU; 0: none.
Answer swap_grow(int slot, gpurota_swap_grow_kind kind, uint64_t bytes, uint64_t* granted);

}  // namespace gpurota::interposer
