#include "daemon/leases/automatic_wish.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace gpurota::daemon {
namespace {

using ::testing::HasSubstr;

class AutomaticWishTest : public ::testing::Test {
 protected:
  AutomaticWishTest() {
    site.memory = SizeSpec{gib(4), 0};
    site.soft_limit = SizeSpec{gib(3), 0};
    GpuInfo gpu;
    gpu.memory = gib(24);
    gpus = {gpu};
  }
  Result<AcquireRequest> taken(const AutomaticWish& wish) const {
    AcquireRequest request;
    GPUROTA_TRY(take_wish(wish, site, gpus, request));
    return request;
  }
  std::string refused(const AutomaticWish& wish) const {
    const auto request = taken(wish);
    return request ? "it is taken" : request.error().message;
  }

  config::Automatic site;
  std::vector<GpuInfo> gpus;
};

TEST_F(AutomaticWishTest, AWishForNothingGetsTheSitesDefaults) {
  const auto request = taken({});
  ASSERT_TRUE(request);
  EXPECT_EQ(request->placement.memory, site.memory);
  EXPECT_EQ(request->placement.soft_limit, site.soft_limit);
  EXPECT_EQ(request->placement.count, 1);
  EXPECT_FALSE(request->placement.swap);
}

TEST_F(AutomaticWishTest, MemoryIsBoundedAndLessIsAlwaysGranted) {
  EXPECT_EQ(taken({.memory = "2G"})->placement.memory, (SizeSpec{gib(2), 0}));
  EXPECT_FALSE(taken({.memory = "2G"})->placement.soft_limit);
  EXPECT_THAT(refused({.memory = "5G"}), HasSubstr("GPUROTA_MEMORY=5G is more than the 4 GiB"));
  site.max_memory = SizeSpec{Bytes(), 50};
  EXPECT_TRUE(taken({.memory = "12G"}));
  EXPECT_TRUE(taken({.memory = "50%"}));
  EXPECT_THAT(refused({.memory = "51%"}), HasSubstr("the 50% of a GPU"));
}

TEST_F(AutomaticWishTest, GpusAndTurnsAreAsTheSiteAllows) {
  EXPECT_THAT(refused({.gpus = "2"}), HasSubstr("automatic.max_gpus"));
  EXPECT_THAT(refused({.swap = "1"}), HasSubstr("automatic.swap"));
  site.max_gpus = 2;
  site.swap = true;
  const auto request = taken({.gpus = "2", .swap = "1", .priority = "low"});
  ASSERT_TRUE(request);
  EXPECT_EQ(request->placement.count, 2);
  EXPECT_TRUE(request->placement.swap);
  EXPECT_EQ(request->priority, -10);
}

TEST_F(AutomaticWishTest, InvalidValueIsReportedWithItsVariable) {
  EXPECT_THAT(refused({.memory = "much"}), HasSubstr("GPUROTA_MEMORY=much: write a size"));
  EXPECT_THAT(refused({.gpus = "0"}), HasSubstr("GPUROTA_GPUS=0: write how many"));
  EXPECT_THAT(refused({.gpus = "2x"}), HasSubstr("GPUROTA_GPUS=2x"));
  EXPECT_THAT(refused({.swap = "yes"}), HasSubstr("GPUROTA_SWAP=yes: write 1"));
  EXPECT_THAT(refused({.priority = "101"}), HasSubstr("GPUROTA_PRIORITY=101"));
}

TEST_F(AutomaticWishTest, TextNeedsNoTerminatingZero) {
  gpurota_msg_automatic question{};
  std::memset(question.memory, '9', sizeof question.memory);
  std::memset(question.gpus, '9', sizeof question.gpus);
  question.ask = GPUROTA_ASK_CONTAINER;
  const AutomaticWish wish = read_wish(question);
  EXPECT_TRUE(wish.container);
  EXPECT_EQ(wish.memory, std::string(16, '9'));
  EXPECT_EQ(wish.gpus, std::string(8, '9'));
  EXPECT_THAT(refused({.memory = wish.memory}), HasSubstr("GPUROTA_MEMORY=9999"));
}

}  // namespace
}  // namespace gpurota::daemon
