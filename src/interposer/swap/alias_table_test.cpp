// Memory that the program maps itself, on a driver that fails on request: each byte is visible
// through each of its mappings, and only through those, wherever the memory has been.
#include "interposer/swap/swap_program_test.h"

namespace gpurota::interposer::swap_test {
namespace {

constexpr std::uint64_t kReadWrite = 3;
constexpr std::uint64_t kTheirs = std::uint64_t{1} << 45;  // addresses that the program reserved

class Aliases : public testing::Test {
 protected:
  explicit Aliases(unsigned seed = 1) : driver(seed), random(seed), space(new SwapSpace()) {
    space->set_calls(&driver.calls);
    space->host().set_limits(&driver.calls, std::uint64_t{4} << 30, std::uint64_t{4} << 30);
  }
  Mover mover() { return Mover(*space, no_progress, nullptr); }

  std::uint64_t make(std::uint64_t size, std::uint32_t traits = 0) {
    std::uint64_t home = 0;
    return space->allocate_pages(size, traits, &home) == CUDA_SUCCESS ? home : 0;
  }
  CUresult map(std::uint64_t home, std::uint64_t offset, std::uint64_t address,
               std::uint64_t size) {
    return space->map_alias(home, offset, address, size);
  }
  // Like cuMemSetAccess: asks the driver, then notes the access.
  void give_access(std::uint64_t home, std::uint64_t offset, std::uint64_t address,
                   std::uint64_t size) {
    driver.allow_range(address, size);
    space->note_access(home, offset, address, size, kReadWrite, kReadWrite);
  }
  void free_all(std::uint64_t home) {
    SwapFreed freed{};
    ASSERT_EQ(space->free(home, &freed), CUDA_SUCCESS);
  }

  FakeDriver driver;
  std::mt19937_64 random;
  std::unique_ptr<SwapSpace> space;
};

TEST_F(Aliases, MemoryMovesWithAllItsMappings) {
  const std::uint64_t home = make(130 * kMiB);
  ASSERT_EQ(map(home, 0, kTheirs, 130 * kMiB), CUDA_SUCCESS);
  ASSERT_EQ(map(home, 60 * kMiB, 2 * kTheirs, 8 * kMiB), CUDA_SUCCESS);
  give_access(home, 0, kTheirs, 130 * kMiB);
  give_access(home, 60 * kMiB, 2 * kTheirs, 8 * kMiB);
  *driver.at(kTheirs + 65 * kMiB) = 42;
  EXPECT_EQ(*driver.at(2 * kTheirs + 5 * kMiB), 42);
  EXPECT_EQ(mover().evict(UINT64_MAX).bytes, 130 * kMiB);
  EXPECT_EQ(driver.mappings(), 0u);
  EXPECT_EQ(driver.physical(), 0u);
  EXPECT_EQ(mover().restore(UINT64_MAX).bytes, 130 * kMiB);
  EXPECT_EQ(*driver.at(kTheirs + 65 * kMiB), 42);
  EXPECT_EQ(*driver.at(2 * kTheirs + 5 * kMiB), 42);
  EXPECT_EQ(space->unmap_alias(home, 0, kTheirs, 130 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(space->unmap_alias(home, 60 * kMiB, 2 * kTheirs, 8 * kMiB), CUDA_SUCCESS);
  free_all(home);
  EXPECT_EQ(driver.mappings(), 0u);
  EXPECT_EQ(driver.ranges(), 0u);
}

TEST_F(Aliases, MemoryUnmappedWhileEvictedIsNotRestored) {
  const std::uint64_t home = make(20 * kMiB);
  ASSERT_EQ(map(home, 0, kTheirs, 20 * kMiB), CUDA_SUCCESS);
  mover().evict(UINT64_MAX);
  EXPECT_EQ(space->unmap_alias(home, 0, kTheirs, 20 * kMiB), CUDA_SUCCESS);
  mover().restore(UINT64_MAX);
  EXPECT_EQ(driver.mappings(), 1u) << "only our own";
  ASSERT_EQ(map(home, 0, kTheirs + kMiB * 40, 20 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(space->unmap_alias(home, 0, kTheirs + kMiB * 40, 20 * kMiB), CUDA_SUCCESS);
  free_all(home);
}

TEST_F(Aliases, MappingWithoutAccessIsRestoredWithoutAccess) {
  const std::uint64_t home = make(4 * kMiB);
  ASSERT_EQ(map(home, 0, kTheirs, 2 * kMiB), CUDA_SUCCESS);
  ASSERT_EQ(map(home, 0, 2 * kTheirs, 2 * kMiB), CUDA_SUCCESS);
  give_access(home, 0, 2 * kTheirs, 2 * kMiB);
  mover().evict(UINT64_MAX);
  mover().restore(UINT64_MAX);
  EXPECT_EQ(driver.at(kTheirs), nullptr);
  EXPECT_NE(driver.at(2 * kTheirs), nullptr);
}

TEST_F(Aliases, RestoredMemoryKeepsItsTraits) {
  make(4 * kMiB, kRdmaCapable | 1);
  mover().evict(UINT64_MAX);
  driver.last_traits = 0;
  mover().restore(UINT64_MAX);
  EXPECT_EQ(driver.last_traits, kRdmaCapable | 1);
}

TEST_F(Aliases, WiredMemoryIsNotEvicted) {
  const std::uint64_t stays = make(64 * kMiB);
  make(64 * kMiB);
  EXPECT_EQ(space->wire(stays), 64 * kMiB);
  EXPECT_EQ(space->wire(stays), 0u) << "it stays already";
  EXPECT_EQ(mover().evict(UINT64_MAX).bytes, 64 * kMiB);
  EXPECT_EQ(driver.mappings(), 1u);
  SwapFreed freed{};
  EXPECT_EQ(space->free(stays, &freed), CUDA_SUCCESS);
  EXPECT_EQ(freed.wired, 64 * kMiB);
  EXPECT_EQ(freed.released, 0u);
}

TEST_F(Aliases, HandlesOfResidentMemoryAreRetainedPieceByPiece) {
  const std::uint64_t a = make(66 * kMiB);
  SwapBacking backing{};
  ASSERT_TRUE(space->find_backing(a + 1, &backing));
  EXPECT_EQ(backing.movable, 66 * kMiB);
  EXPECT_EQ(backing.blocks, 2u);
  space->wire(a);
  ASSERT_TRUE(space->find_backing(a, &backing));
  EXPECT_EQ(backing.movable, 0u);
  std::uint64_t all[3] = {}, last[3] = {};
  EXPECT_EQ(space->handles(a, 0, 3, all), 2u);
  EXPECT_EQ(space->handles(a, 1, 3, last), 1u);
  EXPECT_EQ(last[0], all[1]);
  EXPECT_EQ(space->handles(a, 0, 1, last), 1u);
  EXPECT_EQ(last[0], all[0]);
  EXPECT_EQ(space->handles(a, 2, 3, last), 0u);
}

// Maps, unmaps, evicts and restores at random on a driver that fails, and keeps a record of the
// mappings to compare with.
class AliasesUnderFailures : public Aliases, public testing::WithParamInterface<unsigned> {
 protected:
  AliasesUnderFailures() : Aliases(GetParam()) {}

  struct Piece {
    std::uint64_t home = 0, offset = 0, size = 0;
    bool access = false;
  };
  struct Bytes {
    std::uint64_t size = 0;
    std::map<std::uint64_t, char> values;
  };

  void step() {
    const auto what = random() % 10;
    if (what < 2 && memory.size() < 5) {
      const std::uint64_t size = (1 + random() % 70) * 2 * kMiB;
      if (const std::uint64_t home = make(size)) memory[home] = {size, {}};
    } else if (what < 5) {
      map_any();
    } else if (what < 6) {
      unmap_any();
    } else if (what < 7) {
      mover().evict(random() % 200 * kMiB);
    } else if (what < 8) {
      mover().restore(random() % 200 * kMiB);
    } else if (what < 9) {
      free_any();
    } else {
      run();
    }
  }

  void map_any() {
    if (memory.empty() || space->out_bytes() != 0) return;  // mapping waits for the turn
    auto it = memory.begin();
    std::advance(it, static_cast<long>(random() % memory.size()));
    const std::uint64_t pages = it->second.size / kPageBytes;
    const std::uint64_t offset = random() % pages * kPageBytes;
    const std::uint64_t size = (1 + random() % (pages - offset / kPageBytes)) * kPageBytes;
    const std::uint64_t address = kTheirs + next++ * 256 * kMiB;
    if (map(it->first, offset, address, size) != CUDA_SUCCESS) return;
    pieces[address] = {it->first, offset, size, random() % 4 != 0};
    if (pieces[address].access) give_access(it->first, offset, address, size);
  }
  void unmap_any() {
    if (pieces.empty()) return;
    auto it = pieces.begin();
    std::advance(it, static_cast<long>(random() % pieces.size()));
    const Piece& p = it->second;
    while (space->unmap_alias(p.home, p.offset, it->first, p.size) != CUDA_SUCCESS) {
    }
    pieces.erase(it);
  }
  void free_any() {
    for (auto& [home, bytes] : memory) {
      bool mapped = false;
      for (const auto& [address, piece] : pieces) mapped = mapped || piece.home == home;
      if (mapped) continue;
      SwapFreed freed{};
      space->free(home, &freed);
      memory.erase(home);
      return;
    }
  }
  // Has a turn: all memory is resident, and is read and written through each mapping.
  void run() {
    const double failing = driver.failing;
    for (int tries = 0; space->out_bytes() != 0; ++tries) {
      if (tries > 20) driver.failing = 0;
      mover().restore(UINT64_MAX);
    }
    mover().forget_copies();
    for (const auto& [address, piece] : pieces) {
      Bytes& bytes = memory.at(piece.home);
      for (std::uint64_t at = 0; at < piece.size; at += kPageBytes) {
        char* p = driver.at(address + at);
        ASSERT_EQ(p != nullptr, piece.access);
        if (p == nullptr) continue;
        const auto known = bytes.values.find(piece.offset + at);
        ASSERT_TRUE(known == bytes.values.end() || *p == known->second) << "a wrong byte";
        *p = bytes.values[piece.offset + at] = static_cast<char>(random());
      }
    }
    driver.failing = failing;
  }

  std::map<std::uint64_t, Bytes> memory;  // by home
  std::map<std::uint64_t, Piece> pieces;  // by address
  std::uint64_t next = 0;
};

TEST_P(AliasesUnderFailures, EachMappingShowsItsMemoryAndNothingIsLeft) {
  driver.failing = 0.03;
  for (int i = 0; i < 600 && !HasFatalFailure(); ++i) {
    step();
    ASSERT_EQ(driver.physical(), space->resident_bytes());
  }
  run();
  driver.failing = 0;
  const std::uint64_t lost = space->lost_bytes();
  while (!pieces.empty()) unmap_any();
  while (!memory.empty()) free_any();
  EXPECT_EQ(driver.physical(), lost);
  EXPECT_EQ(space->out_bytes(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, AliasesUnderFailures, testing::Range(1u, 41u));

}  // namespace
}  // namespace gpurota::interposer::swap_test
