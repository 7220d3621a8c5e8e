// Pinned memory through which copies between a GPU and pageable host memory go. The driver would
// stage such copies itself, but on one thread and with the caller waiting.
//
// Called by the mover's thread alone, and by lose_pins() while nothing is moved. All-zero memory is
// an empty set (a forked child starts so).
#pragma once

#include "interposer/swap/host_memory.h"

#include <cstdint>

namespace gpurota::interposer {

// A piece of pinned memory of our own, made when first needed and never given back.
struct PinnedPiece {
  char* memory;   // nullptr: not made yet
  bool lost_pin;  // the context in which it was pinned is gone
  bool in_doubt;  // a copy from or to it failed, and may still be under way

  // Makes sure that the piece exists and is pinned, and that no copy is under way. False: no
  // memory, or the driver's error is in `result`.
  bool have(const SwapCalls& calls, uint64_t bytes, CUresult* result);
};

class BounceBuffers {
 public:
  static constexpr uint64_t kBytes = kRegionBytes;
  static constexpr uint32_t kCount = 6;
  // A block of 64 MiB needs two. More buffers are made only while all of them together are at most
  // a sixteenth of the bytes that may be pinned.
  static constexpr uint32_t kLeast = 2;

  // Marks `count` buffers as used, and sets their bits in `taken`. False if there are not enough:
  // none is marked then. If the only reason is that buffers are in use at the moment, `result` is
  // CUDA_SUCCESS.
  bool take(const SwapCalls& calls, HostMemory& host, uint32_t count, uint8_t* taken,
            CUresult* result);
  // `in_doubt`: a copy from or to these buffers may still be under way.
  void give_back(uint8_t* taken, bool in_doubt);
  // The `number`th buffer of those in `taken`.
  char* memory(uint8_t taken, uint32_t number) const;
  void lose_pins();

 private:
  static uint32_t most(HostMemory& host);

  PinnedPiece pieces_[kCount];
  uint8_t used_;  // a bit for each
};

}  // namespace gpurota::interposer
