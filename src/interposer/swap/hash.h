// The hash by which memory that did not change since it was last evicted is recognised: 128 bits,
// computed on the GPU by a kernel of our own (hash.ptx), here and in the simulated driver by the
// same rule.
//
// Each word of 64 bits goes through a mixing of its own that depends on its place in the block, and
// both halves are sums of what comes out. So words may be taken in any order, by any number of
// threads; sums of parts add up; a single changed word always changes both halves; and several
// changes cancel out only by chance (2^-128). The seed is the process's own. Pure; any thread.
#pragma once

#include <cstdint>

namespace gpurota::interposer {

struct HashSum {
  uint64_t a, b;
};

inline bool operator==(const HashSum& x, const HashSum& y) { return x.a == y.a && x.b == y.b; }
inline bool operator!=(const HashSum& x, const HashSum& y) { return !(x == y); }
inline HashSum operator+(const HashSum& x, const HashSum& y) { return {x.a + y.a, x.b + y.b}; }

// One group of kHashThreads threads hashes a piece of this size; the kernel writes one sum for
// each.
inline constexpr uint64_t kPieceBytes = uint64_t{256} << 10;
inline constexpr uint64_t kWordsPerPiece = kPieceBytes / sizeof(uint64_t);
inline constexpr unsigned kHashThreads = 256;
inline constexpr char kHashKernel[] = "gpurota_hash";

// The value that word number `index` of a block adds to the sum.
HashSum hash_word(uint64_t word, uint64_t index, uint64_t seed);

// Of `bytes`, a multiple of 8, that begin with word number `first` of their block.
HashSum hash_memory(const void* memory, uint64_t bytes, uint64_t first, uint64_t seed);

}  // namespace gpurota::interposer
