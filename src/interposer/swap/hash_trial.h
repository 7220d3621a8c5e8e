// Tests the hashing kernel before its sums are used: for known memory of several sizes, and after
// changes of one bit at random places, the kernel must give the same sums as the host.
//
// Pure, except for the launch, which the caller provides. The worker's thread only.
#pragma once

#include "interposer/swap/hash.h"

#include <cstdint>

namespace gpurota::interposer {

inline constexpr uint64_t kTrialPieces = 8;
inline constexpr uint64_t kTrialBytes = kTrialPieces * kPieceBytes;

struct HashTrial {
  void* self;
  // Runs the kernel over the first `pieces` pieces of `memory`, and waits for it. False: it failed.
  bool (*run)(void* self, uint32_t pieces);
  uint64_t* memory;  // kTrialBytes
  HashSum* sums;     // where the kernel writes; room for kTrialPieces
  uint64_t seed;
};

bool kernel_is_right(const HashTrial& trial);

}  // namespace gpurota::interposer
