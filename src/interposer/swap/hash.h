// The hash that shows whether memory has changed since it was last evicted: 128 bits, computed on
// the GPU by a kernel of our own (hash.ptx), and by the same rule here and in the simulated driver.
//
// Each 64-bit word is mixed with its index in the block, and both halves of the hash are sums of
// the results. So words may be taken in any order, by any number of threads; sums of parts add up;
// a single changed word always changes both halves; and several changes cancel out only by chance
// (2^-128). The seed is the process's own. Pure; any thread.
#pragma once

#include <cstdint>

namespace gpurota::interposer {

struct HashSum {
  uint64_t a, b;
};

inline bool operator==(const HashSum& x, const HashSum& y) { return x.a == y.a && x.b == y.b; }
inline bool operator!=(const HashSum& x, const HashSum& y) { return !(x == y); }
inline HashSum operator+(const HashSum& x, const HashSum& y) { return {x.a + y.a, x.b + y.b}; }

// One thread block of kHashThreads threads hashes one piece of this size; the kernel writes one sum
// for each piece.
inline constexpr uint64_t kPieceBytes = uint64_t{256} << 10;
inline constexpr uint64_t kWordsPerPiece = kPieceBytes / sizeof(uint64_t);
inline constexpr unsigned kHashThreads = 256;
inline constexpr char kHashKernel[] = "gpurota_hash";

// The value that word number `index` of a block adds to the sum.
HashSum hash_word(uint64_t word, uint64_t index, uint64_t seed);

// The sum of `bytes` bytes, a multiple of 8, which begin with word number `first` of their block.
HashSum hash_memory(const void* memory, uint64_t bytes, uint64_t first, uint64_t seed);

}  // namespace gpurota::interposer
