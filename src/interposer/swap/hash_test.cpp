// The hash that shows whether memory has changed.
#include "interposer/swap/hash.h"

#include "interposer/swap/hash_trial.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <utility>
#include <vector>

namespace gpurota::interposer {
namespace {

constexpr std::uint64_t kWords = kPieceBytes / 8;

HashSum hash_words(const std::vector<std::uint64_t>& words, std::uint64_t first,
                   std::uint64_t seed) {
  return hash_memory(words.data(), words.size() * 8, first, seed);
}

bool both_differ(const HashSum& x, const HashSum& y) { return x.a != y.a && x.b != y.b; }

// The numbers that the kernel's text gives when it is run (tests/interposer/hash_ptx_test.py).
TEST(Hash, MatchesTheKernel) {
  std::vector<std::uint64_t> words(3 * kWords);
  for (std::uint64_t i = 0; i < words.size(); ++i) words[i] = (i * i * 0x9E3779B97F4A7C15 + i) >> 3;
  const auto piece = [&](std::uint64_t number) {
    return hash_memory(words.data() + number * kWords, kPieceBytes, number * kWords,
                       0x0123456789ABCDEF);
  };
  EXPECT_EQ(piece(0).a, 0xd1608707011716efu);
  EXPECT_EQ(piece(0).b, 0x85a491e8ce40df16u);
  EXPECT_EQ(piece(2).a, 0x75bc33cc2e9e4485u);
  EXPECT_EQ(piece(2).b, 0x308231728a683cd5u);
}

TEST(Hash, SumsOfPartsAddUp) {
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> words(1000);
  for (std::uint64_t& word : words) word = random();
  for (const std::uint64_t cut : {0u, 1u, 500u, 999u, 1000u}) {
    const HashSum parts = hash_memory(words.data(), cut * 8, 7, 3) +
                          hash_memory(words.data() + cut, (1000 - cut) * 8, 7 + cut, 3);
    EXPECT_EQ(parts, hash_words(words, 7, 3));
  }
}

TEST(Hash, AnyChangedBitChangesBothHalves) {
  std::mt19937_64 random(2);
  std::vector<std::uint64_t> words(300);
  for (std::uint64_t& word : words) word = random() % 3 == 0 ? 0 : random();
  const HashSum before = hash_words(words, 0, 9);
  for (std::uint64_t bit = 0; bit < words.size() * 64; ++bit) {
    words[bit / 64] ^= std::uint64_t{1} << bit % 64;
    ASSERT_TRUE(both_differ(hash_words(words, 0, 9), before)) << bit;
    words[bit / 64] ^= std::uint64_t{1} << bit % 64;
  }
}

TEST(Hash, SwappedWordsChangeTheHash) {
  std::mt19937_64 random(3);
  std::vector<std::uint64_t> words(64);
  for (std::uint64_t& word : words) word = random() % 1000;
  const HashSum before = hash_words(words, 0, 0);
  for (std::size_t i = 0; i < words.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (words[i] == words[j]) continue;
      std::swap(words[i], words[j]);
      ASSERT_TRUE(both_differ(hash_words(words, 0, 0), before)) << i << " " << j;
      std::swap(words[i], words[j]);
    }
  }
}

// The changes are those that programs make: numbers that change their signs, counters that go up,
// the same value everywhere.
TEST(Hash, TypicalChangesDoNotCancelOut) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 200000; ++round) {
    const std::uint64_t i = random() % 100, j = 100 + random() % 100;
    const std::uint64_t x = random(), y = round % 2 == 0 ? x : random();
    const std::uint64_t bit = std::uint64_t{1} << (round % 3 == 0 ? 63 : random() % 64);
    const std::uint64_t seed = round % 5 == 0 ? 0 : random();
    const HashSum before = hash_word(x, i, seed) + hash_word(y, j, seed);
    ASSERT_TRUE(both_differ(hash_word(x ^ bit, i, seed) + hash_word(y ^ bit, j, seed), before));
    ASSERT_TRUE(both_differ(hash_word(x + bit, i, seed) + hash_word(y - bit, j, seed), before));
    if (x != y) {
      ASSERT_TRUE(both_differ(hash_word(y, i, seed) + hash_word(x, j, seed), before));
    }
  }
}

TEST(Hash, DependsOnSeedAndPosition) {
  const HashSum zero = hash_word(0, 0, 0);
  EXPECT_TRUE(both_differ(hash_word(0, 1, 0), zero));
  EXPECT_TRUE(both_differ(hash_word(0, 0, 1), zero));
  EXPECT_TRUE(both_differ(hash_word(1, 0, 0), zero));
}

// A kernel that is right, or has a fault.
class Kernel {
 public:
  enum class Fault {
    kNone,
    kSkipsTheLastWord,
    kSkipsOneThread,
    kSkipsAPiece,
    kForgetsTheSeed,
    kCountsFromThePiece,
    kWritesTooMany,
    kWritesNothing,
    kLosesTheUpperHalf,
    kFails,
  };

  bool passes(Fault fault) {
    fault_ = fault;
    return kernel_is_right({this, run, memory_.data(), sums_.data(), 0x1234567});
  }

 private:
  static bool run(void* self, std::uint32_t pieces) {
    auto& kernel = *static_cast<Kernel*>(self);
    const Fault fault = kernel.fault_;
    const std::uint32_t writes = fault == Fault::kWritesTooMany ? kTrialPieces : pieces;
    for (std::uint32_t piece = 0; piece < writes; ++piece) {
      if (fault == Fault::kWritesNothing) break;
      kernel.sums_[piece] = sum_of(fault, kernel.memory_.data() + piece * kWords, piece);
    }
    return fault != Fault::kFails;
  }

  static HashSum sum_of(Fault fault, const std::uint64_t* words, std::uint64_t piece) {
    const std::uint64_t seed = fault == Fault::kForgetsTheSeed ? 0 : 0x1234567;
    const std::uint64_t first = fault == Fault::kCountsFromThePiece ? 0 : piece * kWords;
    if (fault == Fault::kSkipsAPiece && piece == 5) return {};
    if (fault == Fault::kSkipsTheLastWord) {
      return hash_memory(words, kPieceBytes - 8, first, seed);
    }
    HashSum sum = hash_memory(words, kPieceBytes, first, seed);
    if (fault == Fault::kLosesTheUpperHalf) sum.b = static_cast<std::uint32_t>(sum.b);
    if (fault != Fault::kSkipsOneThread) return sum;
    for (std::uint64_t i = std::uint64_t{77} * 2; i < kWords; i += 1024) {
      const HashSum word = hash_word(words[i], first + i, seed);
      sum = {sum.a - word.a, sum.b - word.b};
    }
    return sum;
  }

  std::vector<std::uint64_t> memory_ = std::vector<std::uint64_t>(kTrialBytes / 8);
  std::vector<HashSum> sums_ = std::vector<HashSum>(kTrialPieces);
  Fault fault_ = Fault::kNone;
};

TEST(HashTrial, KernelWithAnyFaultIsRejected) {
  Kernel kernel;
  EXPECT_TRUE(kernel.passes(Kernel::Fault::kNone));
  for (int fault = 1; fault <= static_cast<int>(Kernel::Fault::kFails); ++fault) {
    EXPECT_FALSE(kernel.passes(static_cast<Kernel::Fault>(fault))) << fault;
  }
}

}  // namespace
}  // namespace gpurota::interposer
