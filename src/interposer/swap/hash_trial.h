// Tries the hashing kernel out before its word is taken for anything: known memory of several
// sizes, and changes of one bit at random places, must have the sums that the host makes of them.
//
// Pure but for the launch, which its caller does. The worker's thread.
#pragma once

#include "interposer/swap/hash.h"

#include <cstdint>

namespace gpurota::interposer {

inline constexpr uint64_t kTrialPieces = 8;
inline constexpr uint64_t kTrialBytes = kTrialPieces * kPieceBytes;

struct HashTrial {
  void* self;
  // Runs the kernel over so many pieces of `memory` from its beginning on, and waits for it. False:
  // it failed.
  bool (*run)(void* self, uint32_t pieces);
  uint64_t* memory;  // kTrialBytes
  HashSum* sums;     // where the kernel writes; room for kTrialPieces
  uint64_t seed;
};

bool kernel_is_right(const HashTrial& trial);

}  // namespace gpurota::interposer
