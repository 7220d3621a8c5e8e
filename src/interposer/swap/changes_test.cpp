// Unchanged memory is not copied again, changed memory is, and a hash that cannot be relied on is
// not used.
#include "interposer/swap/swap_program_test.h"

namespace gpurota::interposer::swap_test {
namespace {

class Changes : public Swap {
 protected:
  // Evicts and restores all memory, then lets the program run.
  Moved turn() {
    const std::uint64_t before = driver.copied_out;
    const Moved moved = mover().evict(UINT64_MAX);
    copied = driver.copied_out - before;
    EXPECT_EQ(moved.bytes, space->resident_bytes() + moved.bytes) << "all of it is out";
    EXPECT_EQ(mover().restore(UINT64_MAX).bytes, moved.bytes);
    mover().forget_copies();
    return moved;
  }
  char* last_byte(std::uint64_t address) { return driver.at(address + live[address] - kScale); }

  std::uint64_t copied = 0;
};

TEST_F(Changes, UnchangedBlockIsNotCopiedAgain) {
  const std::uint64_t a = add(200 * kMiB);
  add(2 * kMiB);
  EXPECT_EQ(turn().clean, 0u);
  EXPECT_EQ(copied, 202 * kMiB);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(turn().clean, 202 * kMiB);
    EXPECT_EQ(copied, 0u);
    check(a);
  }
  EXPECT_FALSE(driver.distrusted);
}

TEST_F(Changes, OnlyTheUnitOfAChangedByteIsCopied) {
  const std::uint64_t a = add(138 * kMiB);  // 64, 64, 10
  turn();
  for (int i = 0; i < 150; ++i) {
    const std::uint64_t at = a + (i == 0   ? 0
                                  : i == 1 ? 138 * kMiB / kScale - 1
                                           : random() % (138 * kMiB / kScale)) *
                                     kScale;
    *driver.at(at) = static_cast<char>(*driver.at(at) ^ 1 << random() % 8);
    const char now = *driver.at(at);
    EXPECT_EQ(turn().clean, 136 * kMiB) << at - a;
    EXPECT_EQ(copied, kUnitBytes);
    ASSERT_EQ(*driver.at(at), now) << at - a;
  }
  EXPECT_FALSE(driver.distrusted);
}

TEST_F(Changes, UnitsThatWereSwappedAreCopied) {
  const std::uint64_t a = add(64 * kMiB);
  turn();
  const std::uint64_t unit = kUnitBytes / kScale;
  char* const first = driver.at(a + 3 * kUnitBytes);
  char* const second = driver.at(a + 9 * kUnitBytes);
  for (std::uint64_t i = 0; i < unit; ++i) std::swap(first[i], second[i]);
  EXPECT_EQ(turn().clean, 60 * kMiB);
}

TEST_F(Changes, BlockInPageableMemoryIsComparedToo) {
  const std::uint64_t a = add(96 * kMiB);
  host().set_limits(&driver.calls, std::uint64_t{1} << 30, 32 * kMiB);
  turn();
  *last_byte(a) = static_cast<char>(*last_byte(a) ^ 4);
  const char now = *last_byte(a);
  EXPECT_EQ(turn().clean, 94 * kMiB);
  EXPECT_EQ(*last_byte(a), now);
}

TEST_F(Changes, WithoutAKernelEverythingIsCopied) {
  driver.hashes = false;
  const std::uint64_t a = add(100 * kMiB);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(turn().clean, 0u);
    EXPECT_EQ(copied, 100 * kMiB);
    check(a);
  }
}

TEST_F(Changes, EvictsEvenIfTheHashLaunchFails) {
  const std::uint64_t a = add(100 * kMiB);
  turn();
  driver.hash_fails = true;
  EXPECT_EQ(turn().clean, 0u);
  EXPECT_EQ(copied, 100 * kMiB);
  check(a);
  driver.hash_fails = false;
  EXPECT_EQ(turn().clean, 0u) << "there were no sums of the last time";
  EXPECT_EQ(turn().clean, 100 * kMiB);
}

// Kernels that do not read all of the memory, that read other memory, or that read nothing.
TEST_F(Changes, WrongKernelIsDetectedBeforeMemoryIsReleased) {
  const std::vector<std::function<void(std::string*, std::uint64_t)>> wrong = {
      [](std::string* contents, std::uint64_t) { contents->back() = 0; },
      [](std::string* contents, std::uint64_t) { contents->front() = 0; },
      [](std::string* contents, std::uint64_t) { contents->assign(kContents, 0); },
      [](std::string* contents, std::uint64_t) { std::swap((*contents)[8], (*contents)[16]); },
  };
  for (const auto& misread : wrong) {
    driver.distrusted = false;
    driver.misread = nullptr;
    const std::uint64_t a = add(128 * kMiB);
    for (std::uint64_t at = 0; at < 128 * kMiB; at += kScale) {
      *driver.at(a + at) = static_cast<char>(random() | 1);
    }
    turn();
    // First makes changes, all over the memory, that the wrong kernel does not see.
    for (std::uint64_t at = 0; at < 128 * kMiB; at += kScale) {
      *driver.at(a + at) = static_cast<char>(*driver.at(a + at) + 2);
    }
    const std::vector<char> now(driver.at(a), driver.at(a) + 64 * kMiB / kScale);
    driver.misread = misread;
    EXPECT_EQ(turn().clean, 0u);
    EXPECT_TRUE(driver.distrusted);
    EXPECT_EQ(copied, space->resident_bytes());
    EXPECT_EQ(std::memcmp(driver.at(a), now.data(), now.size()), 0);
    const int before = driver.hashed;
    turn();
    EXPECT_EQ(driver.hashed, before) << "never again";
  }
}

// Sums of a wrong kernel may say that nothing has changed although something has: the host compares
// the bytes of the pieces that it checks.
TEST_F(Changes, ConstantSumsAreDetected) {
  const std::uint64_t a = add(64 * kMiB);
  write(a);
  const std::string before(driver.at(a), kContents);
  turn();
  for (std::uint64_t at = 0; at < 64 * kMiB; at += kScale) *driver.at(a + at) = 77;
  driver.misread = [&](std::string* contents, std::uint64_t) { *contents = before; };
  turn();
  EXPECT_TRUE(driver.distrusted);
  EXPECT_EQ(*last_byte(a), 77);
}

TEST_F(Changes, ChangedCopyIsDetected) {
  const std::uint64_t a = add(32 * kMiB);
  turn();
  char* const kept = host().address({1, 0, 1});
  for (std::uint64_t at = 0; at < 32 * kMiB; at += kPieceBytes) {
    kept[at] = static_cast<char>(kept[at] ^ 1);
  }
  EXPECT_EQ(turn().clean, 0u);
  EXPECT_TRUE(driver.distrusted);
  check(a);
}

// The block's sums were kept already, but its copy was not made.
TEST_F(Changes, ComparedBlockThatWasNotEvictedIsCopiedNextTime) {
  const std::uint64_t a = add(64 * kMiB);
  const std::uint64_t b = add(64 * kMiB);
  turn();
  ++*last_byte(a);
  ++*last_byte(b);
  const char now[] = {*last_byte(a), *last_byte(b)};
  driver.copies_fail = true;
  EXPECT_EQ(mover().evict(UINT64_MAX).bytes, 0u);
  driver.copies_fail = false;
  mover().forget_copies();
  EXPECT_EQ(turn().bytes, 128 * kMiB);
  EXPECT_EQ(*last_byte(a), now[0]);
  EXPECT_EQ(*last_byte(b), now[1]);
}

TEST_F(Changes, CopiesOfRunningTenantsAreEvictedFirst) {
  const std::uint64_t a = add(64 * kMiB);
  const std::uint64_t b = add(64 * kMiB);
  host().set_limits(&driver.calls, 128 * kMiB, 128 * kMiB);
  turn();
  const std::uint64_t c = add(64 * kMiB);
  host().set_limits(&driver.calls, 192 * kMiB, 192 * kMiB);
  EXPECT_EQ(turn().clean, 128 * kMiB);
  // No host memory is left for another block, until copies are given up.
  const std::uint64_t d = add(64 * kMiB);
  EXPECT_EQ(mover().evict(64 * kMiB).clean, 64 * kMiB) << "what needs no copy goes first";
  const Moved last = mover().evict(UINT64_MAX);
  EXPECT_EQ(last.bytes, 128 * kMiB) << "as much as before there were copies to keep";
  EXPECT_TRUE(last.out_of_host);
  mover().restore(UINT64_MAX);
  for (const std::uint64_t address : {a, b, c, d}) check(address);
}

TEST_F(Changes, CopyThatIsLikelyStaleIsDroppedFirst) {
  const std::uint64_t a = add(64 * kMiB);
  const std::uint64_t b = add(64 * kMiB);
  turn();
  const auto change = [&] {
    for (std::uint64_t at = 0; at < 64 * kMiB; at += kScale) ++*driver.at(b + at);
  };
  change();
  turn();
  EXPECT_EQ(host().free_bytes(), 0u);
  mover().reclaim_buffers(1);
  EXPECT_EQ(host().free_bytes(), 64 * kMiB);
  EXPECT_EQ(turn().clean, 64 * kMiB) << "that of what never changes is there still";
  check(a);
}

TEST_F(Changes, ConstantlyChangingBlockIsComparedRarelyUntilItStopsChanging) {
  const std::uint64_t a = add(64 * kMiB);
  for (int i = 0; i < 200; ++i) {
    for (std::uint64_t at = 0; at < 64 * kMiB; at += kUnitBytes) ++*driver.at(a + at);
    turn();
    EXPECT_EQ(copied, 64 * kMiB);
  }
  EXPECT_LT(driver.hashed, 30);
  bool seen = false;
  for (int i = 0; i < 34; ++i) seen = seen || turn().clean == 64 * kMiB;
  EXPECT_TRUE(seen);
}

TEST_F(Changes, MemoryFreedWhileItIsHashedIsReleased) {
  const std::uint64_t a = add(64 * kMiB);
  const std::uint64_t b = add(64 * kMiB);
  turn();
  SwapFreed freed{};
  driver.misread = [&](std::string*, std::uint64_t) {
    if (live.erase(a) == 0) return;
    EXPECT_EQ(space->free(a, &freed), CUDA_SUCCESS);
  };
  const Moved moved = mover().evict(UINT64_MAX);
  EXPECT_EQ(freed.released + freed.dropped, 0u) << "it is the mover's to end";
  EXPECT_EQ(moved.freed_here + moved.freed_out, 64 * kMiB);
  EXPECT_EQ(driver.physical(), 0u);
  EXPECT_EQ(host().free_bytes(), 64 * kMiB);
  EXPECT_EQ(mover().restore(UINT64_MAX).bytes, 64 * kMiB);
  check(b);
}

TEST_F(Changes, SmallBlocksAreHashedTogetherAndAllEvicted) {
  for (int i = 0; i < 150; ++i) add(2 * kMiB);
  EXPECT_EQ(turn().bytes, 300 * kMiB);
  EXPECT_EQ(turn().clean, 300 * kMiB);
  for (const auto& [address, size] : live) check(address);
}

}  // namespace
}  // namespace gpurota::interposer::swap_test
