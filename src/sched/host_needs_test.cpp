#include "sched/host_needs.h"

#include <gtest/gtest.h>

#include <random>

namespace gpurota::sched {
namespace {

using Parts = std::vector<Bytes>;

TEST(DivideByNeed, UnneededSharesGoToThoseWithMoreNeed) {
  EXPECT_EQ(divide_by_need(gib(20), {gib(12), gib(1), gib(1)}), (Parts{gib(14), gib(3), gib(3)}));
  EXPECT_EQ(divide_by_need(gib(10), {gib(12), gib(1), gib(1)}), (Parts{gib(8), gib(1), gib(1)}));
  EXPECT_EQ(divide_by_need(gib(10), {gib(12), gib(12)}), (Parts{gib(5), gib(5)}));
  EXPECT_EQ(divide_by_need(gib(9), {Bytes(), Bytes(), Bytes()}), (Parts{gib(3), gib(3), gib(3)}));
}

TEST(DivideByNeed, AcceptsZeroAndNoNeeds) {
  EXPECT_EQ(divide_by_need(gib(1), {}), Parts{});
  EXPECT_EQ(divide_by_need(Bytes(), {gib(1), Bytes()}), (Parts{Bytes(), Bytes()}));
}

TEST(DivideByNeed, PartsCoverNeedsOrEvenPartsAndAddUpToTheWhole) {
  std::mt19937_64 random(44);
  for (int i = 0; i < 1000; ++i) {
    const Bytes whole(random() % (std::uint64_t{1} << 40));
    Parts needs(1 + random() % 20);
    for (Bytes& need : needs) need = Bytes(random() % (std::uint64_t{1} << (20 + random() % 21)));
    const Parts parts = divide_by_need(whole, needs);
    Bytes sum;
    for (std::size_t k = 0; k < needs.size(); ++k) {
      EXPECT_GE(parts[k], std::min(needs[k], Bytes(whole.count() / needs.size())));
      sum += parts[k];
    }
    EXPECT_LE(sum, whole);
    EXPECT_LT((whole - sum).count(), needs.size());
  }
}

// Two leases on a GPU of 10 GiB.
struct LikelyToMoveTest : testing::Test {
  LikelyToMoveTest() {
    gpu = memory.add_gpu(GpuUuid("GPU-0"), gib(10));
    memory.add(kOne, LeaseId(1));
    memory.add(kOther, LeaseId(2));
  }
  Bytes of(TenantId tenant, bool was_pinned = false) const {
    return LikelyToMove(memory).of(tenant, was_pinned);
  }
  static constexpr TenantId kOne{1}, kOther{2};
  Residency memory;
  GpuSlot gpu;
};

TEST_F(LikelyToMoveTest, IsZeroUntilLeasesHoldMoreThanEightTenths) {
  memory.at(kOne, gpu).movable = gib(5);
  memory.at(kOther, gpu).movable = gib(3);
  EXPECT_EQ(of(kOne), Bytes());
  memory.at(kOther, gpu).movable = gib(3) + mib(1);
  EXPECT_EQ(of(kOne), gib(2));
  EXPECT_EQ(of(kOther), gib(2));
}

TEST_F(LikelyToMoveTest, PinnedMemoryStaysPinnedAboveSevenTenths) {
  memory.at(kOne, gpu).movable = gib(5);
  memory.at(kOther, gpu).movable = gib(2) + mib(1);
  EXPECT_EQ(of(kOne, true), gib(2));
  EXPECT_EQ(of(kOne), Bytes());
  memory.at(kOther, gpu).movable = gib(2);
  EXPECT_EQ(of(kOne, true), Bytes());
}

TEST_F(LikelyToMoveTest, IsTheExcessPlusAFifthOfTheGpuUpToTheTenantsMemory) {
  memory.at(kOne, gpu).movable = gib(9);
  memory.at(kOther, gpu).movable = gib(4);
  EXPECT_EQ(of(kOne), gib(5));
  EXPECT_EQ(of(kOther), gib(4));
}

TEST_F(LikelyToMoveTest, IsZeroForALeaseAlone) {
  memory.at(kOne, gpu).movable = gib(10);
  EXPECT_EQ(of(kOne), Bytes());
}

}  // namespace
}  // namespace gpurota::sched
