// Memory for the tests of the mover: gigabytes of addresses, megabytes of stored contents.
#pragma once

#include "interposer/swap/hash.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace gpurota::interposer::swap_test {

// Sizes are scaled down: a piece of 256 KiB has 1 KiB of contents at its beginning, then zeros.
// Copies and hashes happen only when a test waits for them.
inline constexpr std::uint64_t kScale = 256;
inline constexpr std::uint64_t kContents = kPieceBytes / kScale;

// The sum of a piece with these contents. The sum of the zeros after them is computed only once.
inline HashSum sum_of_piece(const std::string& contents, std::uint64_t piece, std::uint64_t seed) {
  static std::map<std::pair<std::uint64_t, std::uint64_t>, HashSum> zeros;
  const std::uint64_t first = piece * (kPieceBytes / 8);
  const auto [it, is_new] = zeros.try_emplace({piece, seed});
  if (is_new) {
    const std::vector<char> rest(kPieceBytes - kContents);
    it->second = hash_memory(rest.data(), rest.size(), first + kContents / 8, seed);
  }
  return it->second + hash_memory(contents.data(), contents.size(), first, seed);
}

// Memory that the driver of swap_driver_test.h has made and mapped, and copies or hashes that have
// begun.
struct Memory {
  std::vector<char> bytes;
  int mappings = 0;
  bool hosted = false;
};

struct Mapped {
  std::uint64_t size = 0;
  std::uint64_t handle = 0;
  std::uint64_t offset = 0;
  bool access = false;
};

struct PendingCopy {
  std::uint64_t fence = 0;  // 0: not fenced yet
  char* host = nullptr;
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  bool out = false;
  HashSum* sums = nullptr;  // a hash
  std::uint64_t seed = 0;
};

}  // namespace gpurota::interposer::swap_test
