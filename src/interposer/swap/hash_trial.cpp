#include "interposer/swap/hash_trial.h"

namespace gpurota::interposer {
namespace {

constexpr int kChanges = 32;
constexpr uint32_t kSizes[] = {1, 3, kTrialPieces};
constexpr HashSum kNotWritten = {~uint64_t{0}, 0x5aa5};

uint64_t next_random(uint64_t* x) {
  *x ^= *x << 13;
  *x ^= *x >> 7;
  *x ^= *x << 17;
  return *x;
}

// Whether the kernel writes the right sums of `pieces` pieces, and nothing beyond them.
bool run(const HashTrial& trial, const HashSum* expected, uint32_t pieces) {
  for (uint64_t i = 0; i < kTrialPieces; ++i) trial.sums[i] = kNotWritten;
  if (!trial.run(trial.self, pieces)) return false;
  for (uint32_t i = 0; i < kTrialPieces; ++i) {
    if (trial.sums[i] != (i < pieces ? expected[i] : kNotWritten)) return false;
  }
  return true;
}

}  // namespace

bool kernel_is_right(const HashTrial& trial) {
  uint64_t random = trial.seed | 1;
  HashSum expected[kTrialPieces];
  for (uint64_t piece = 0; piece < kTrialPieces; ++piece) {
    uint64_t* words = trial.memory + piece * kWordsPerPiece;
    for (uint64_t i = 0; i < kWordsPerPiece; ++i) words[i] = next_random(&random);
    expected[piece] = hash_memory(words, kPieceBytes, piece * kWordsPerPiece, trial.seed);
  }
  for (const uint32_t pieces : kSizes) {
    if (!run(trial, expected, pieces)) return false;
  }
  // Also changes the first and the last word.
  for (int i = 0; i < kChanges; ++i) {
    const uint64_t words = kTrialPieces * kWordsPerPiece;
    const uint64_t at = i == 0 ? 0 : i == 1 ? words - 1 : next_random(&random) % words;
    HashSum& sum = expected[at / kWordsPerPiece];
    const HashSum before = hash_word(trial.memory[at], at, trial.seed);
    trial.memory[at] ^= uint64_t{1} << next_random(&random) % 64;
    const HashSum now = hash_word(trial.memory[at], at, trial.seed);
    sum = {sum.a - before.a + now.a, sum.b - before.b + now.b};
    if (!run(trial, expected, uint32_t{kTrialPieces})) return false;
  }
  return true;
}

}  // namespace gpurota::interposer
