#include "interposer/swap/hash.h"

#include <cstring>

namespace gpurota::interposer {
namespace {

// Odd numbers without a pattern, the same as in hash.ptx.
constexpr uint64_t kStep = 0xb4dd7f0b4614beb3;
constexpr uint64_t kMix1 = 0xf93137493673750f;
constexpr uint64_t kMix2 = 0xfd48b8a148cbc153;
constexpr uint64_t kMix3 = 0x8ddaad4654525573;
constexpr uint64_t kMix4 = 0x86622bb7620c1ee3;
constexpr uint64_t kMix5 = 0xbfa2379e952efa45;

uint64_t mix(uint64_t x, uint64_t factor) {
  x *= factor;
  return x ^ x >> 32;
}

void add_word(uint64_t word, uint64_t key, HashSum* sum) {
  const uint64_t x = mix(mix(mix(word ^ key, kMix1), kMix2), kMix3);
  sum->a += x;
  sum->b += mix(mix(x, kMix4), kMix5);
}

}  // namespace

HashSum hash_word(uint64_t word, uint64_t index, uint64_t seed) {
  HashSum sum{};
  add_word(word, seed + index * kStep, &sum);
  return sum;
}

HashSum hash_memory(const void* memory, uint64_t bytes, uint64_t first, uint64_t seed) {
  const auto* from = static_cast<const char*>(memory);
  HashSum sum{};
  uint64_t key = seed + first * kStep;
  for (uint64_t done = 0; done + sizeof(uint64_t) <= bytes; done += sizeof(uint64_t)) {
    uint64_t word = 0;
    memcpy(&word, from + done, sizeof(word));
    add_word(word, key, &sum);
    key += kStep;
  }
  return sum;
}

}  // namespace gpurota::interposer
