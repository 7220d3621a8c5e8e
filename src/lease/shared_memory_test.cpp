// Memory that several processes share: charged to each lease that has it, and only once to each.
#include "lease/grant_book.h"

#include <gtest/gtest.h>

namespace gpurota::lease {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kStart{};
const GpuUuid kGpu{"GPU-0"};
constexpr MemoryKey kKey = 0x1234;

class SharedMemoryTest : public testing::Test {
 protected:
  SharedMemoryTest() {
    for (const std::uint64_t id : {1, 2}) {
      Lease lease;
      lease.id = LeaseId{id};
      lease.gpus = {LeaseGpu{kGpu, gib(8), std::nullopt}};
      book.open(lease);
    }
    book.add_tenant(maker, LeaseId{1}, {});
    book.add_tenant(sibling, LeaseId{1}, {});
    book.add_tenant(stranger, LeaseId{2}, {});
  }
  bool grow(TenantId tenant, Bytes need) {
    const auto actions = book.grow(kGpu, {tenant, ++seq_, false, {}, need, need}, kStart + 3s);
    for (const auto& a : actions) {
      if (const auto* reply = std::get_if<GrantReply>(&a.action)) {
        return reply->status == GrantStatus::kGranted;
      }
    }
    return false;
  }
  void make_shared(Bytes bytes) {
    ASSERT_TRUE(grow(maker, bytes));
    book.hold_shared(maker, kGpu, kKey, bytes);
  }
  void measure(TenantId tenant, LeaseId lease, const Measurement& seen) {
    book.measure(lease, kGpu, {{tenant, seen}}, {}, seen.taken);
  }
  Bytes charged(std::uint64_t lease) {
    return book.find(LeaseId{lease}, kGpu).if_there()->charged();
  }

  GrantBook book;
  TenantId maker{1}, sibling{2}, stranger{3};

 private:
  std::uint32_t seq_ = 0;
};

TEST_F(SharedMemoryTest, MemoryOfOneLeaseIsCountedOnce) {
  make_shared(gib(5));
  for (int i = 0; i < 2; ++i) {
    const auto joined = book.join_shared(sibling, kGpu, kKey);
    EXPECT_TRUE(joined.is_counted);
    EXPECT_EQ(joined.bytes, gib(5));
  }
  EXPECT_EQ(charged(1), gib(5));
  EXPECT_TRUE(grow(sibling, gib(3)));
}

TEST_F(SharedMemoryTest, MemoryOfAnotherLeaseIsNotJoinedButItsSizeIsKnown) {
  make_shared(gib(5));
  const auto joined = book.join_shared(stranger, kGpu, kKey);
  EXPECT_FALSE(joined.is_counted);
  EXPECT_EQ(joined.bytes, gib(5));
  EXPECT_EQ(book.join_shared(stranger, kGpu, kKey + 1).bytes, Bytes());
  EXPECT_EQ(charged(2), Bytes());
}

TEST_F(SharedMemoryTest, MemoryOfTwoLeasesIsCountedOnceOnTheGpu) {
  make_shared(gib(5));
  EXPECT_EQ(book.counted_by_several(kGpu), Bytes());
  ASSERT_TRUE(grow(stranger, gib(5)));
  book.hold_shared(stranger, kGpu, kKey, gib(5));
  book.join_shared(sibling, kGpu, kKey);
  EXPECT_EQ(charged(1) + charged(2) - book.counted_by_several(kGpu), gib(5));
  book.end_shared(maker, kGpu, {kKey, gib(5)}, kStart);
  book.end_shared(sibling, kGpu, {kKey, gib(5)}, kStart);
  EXPECT_EQ(charged(1) + charged(2) - book.counted_by_several(kGpu), gib(5));
}

TEST_F(SharedMemoryTest, MemoryStaysChargedUntilItsLastHolderEnds) {
  make_shared(gib(5));
  book.join_shared(sibling, kGpu, kKey);
  book.end_shared(maker, kGpu, {kKey, gib(5)}, kStart);
  EXPECT_EQ(charged(1), gib(5));
  book.end_shared(sibling, kGpu, {kKey, gib(5)}, kStart);
  EXPECT_EQ(charged(1), Bytes());
}

// Shared memory still counts if its grant is returned before the memory is freed: otherwise others
// would get memory that is in use.
TEST_F(SharedMemoryTest, ReturnedGrantDoesNotLowerTheCountOfSharedMemory) {
  make_shared(gib(5));
  book.join_shared(sibling, kGpu, kKey);
  book.give_back(maker, kGpu, gib(5), 0, 0, kStart);
  EXPECT_EQ(charged(1), gib(5));
  book.end_shared(maker, kGpu, {kKey, Bytes()}, kStart);
  EXPECT_EQ(charged(1), gib(5));
  book.end_shared(sibling, kGpu, {kKey, gib(5)}, kStart);
  EXPECT_EQ(charged(1), Bytes());
}

TEST_F(SharedMemoryTest, MemoryOfAKilledOwnerIsChargedToItsImporters) {
  make_shared(gib(5));
  book.join_shared(sibling, kGpu, kKey);
  book.mark_dead(maker, kStart);
  EXPECT_EQ(charged(1), gib(5));
  measure(maker, LeaseId{1}, {gib(1), true, {}, kStart + 1s});  // its memory is freed in pieces
  EXPECT_EQ(charged(1), gib(5));
  measure(maker, LeaseId{1}, {std::nullopt, false, {}, kStart + 2s});
  EXPECT_EQ(charged(1), gib(5));
  book.end_shared(sibling, kGpu, {kKey, gib(5)}, kStart + 3s);
  EXPECT_EQ(charged(1), Bytes());
}

TEST_F(SharedMemoryTest, MemoryOfAKilledImporterIsReleasedAsCharged) {
  make_shared(gib(5));
  ASSERT_TRUE(grow(stranger, gib(5)));
  book.hold_shared(stranger, kGpu, kKey, gib(5));
  EXPECT_EQ(charged(2), gib(5));
  book.join_shared(sibling, kGpu, kKey);
  for (const auto& [tenant, lease] : {std::pair(stranger, 2), std::pair(sibling, 1)}) {
    book.mark_dead(tenant, kStart);
    measure(tenant, LeaseId(static_cast<std::uint64_t>(lease)),
            {std::nullopt, false, {}, kStart + 1s});
  }
  EXPECT_EQ(charged(2), Bytes());
  EXPECT_EQ(charged(1), gib(5));
}

TEST_F(SharedMemoryTest, SharedMemoryNeverExceedsTheGrant) {
  book.hold_shared(maker, kGpu, kKey, gib(5));
  EXPECT_FALSE(book.join_shared(sibling, kGpu, kKey).is_counted);
  EXPECT_EQ(charged(1), Bytes());
}

TEST_F(SharedMemoryTest, MemoryWithAnotherSizeIsAnotherMemory) {
  make_shared(gib(2));
  ASSERT_TRUE(grow(sibling, gib(3)));
  book.hold_shared(sibling, kGpu, kKey, gib(3));
  EXPECT_EQ(charged(1), gib(5));
}

TEST_F(SharedMemoryTest, ReconnectedProcessReportsSharedMemoryAgain) {
  make_shared(gib(5));
  book.join_shared(sibling, kGpu, kKey);
  const TenantId back{7};
  book.disconnect(maker, kStart);
  book.add_tenant(back, LeaseId{1}, {{kGpu, gib(5), 0}});
  book.replace(maker, back);
  EXPECT_EQ(charged(1), gib(10));
  book.hold_shared(back, kGpu, kKey, gib(5));
  EXPECT_EQ(charged(1), gib(5));
}

TEST_F(SharedMemoryTest, MemoryBeyondTheRecordLimitIsChargedInFull) {
  const std::uint64_t more = SharedBook::kMostOfTenant + 8;
  ASSERT_TRUE(grow(maker, Bytes(more)));
  for (std::uint64_t key = 1; key <= more; ++key) book.hold_shared(maker, kGpu, key, Bytes(1));
  EXPECT_TRUE(book.join_shared(sibling, kGpu, SharedBook::kMostOfTenant).is_counted);
  EXPECT_FALSE(book.join_shared(sibling, kGpu, SharedBook::kMostOfTenant + 1).is_counted);
}

// Drivers show imported memory for the importer or for another process. With either driver, the
// charge is the same: imported memory does not hide the cost of the importer's context, and does
// not increase this cost.
TEST_F(SharedMemoryTest, ImportedMemoryIsNotCountedAsAContext) {
  book.set_contexts(stranger, kGpu, 1, kStart);
  measure(stranger, LeaseId{2}, {mib(518), true, {}, kStart + 1s});
  ASSERT_EQ(charged(2), mib(518));
  ASSERT_TRUE(grow(stranger, gib(5)));
  const Bytes imported = gib(5);
  for (const Bytes held : {mib(518), gib(5) + mib(518), mib(518)}) {
    for (int i = 0; i < 5; ++i) {
      measure(stranger, LeaseId{2}, {held, true, imported, kStart + 2s, imported});
    }
    EXPECT_EQ(charged(2), gib(5) + mib(518));
  }
  measure(stranger, LeaseId{2},
          {mib(518), true, imported, kStart + 2s});  // between the two figures
  EXPECT_EQ(charged(2), gib(5) + mib(518));
  for (int i = 0; i < 5; ++i) {  // a library is loaded
    measure(stranger, LeaseId{2}, {gib(5) + mib(700), true, imported, kStart + 3s, imported});
  }
  EXPECT_EQ(charged(2), gib(5) + mib(700));
}

}  // namespace
}  // namespace gpurota::lease
