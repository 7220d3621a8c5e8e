#include "daemon/watch/limit_setter.h"

#include "testing/fake_gpu_probe.h"
#include "testing/temp_dir.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace gpurota::daemon {
namespace {

using testing::FakeGpuProbe;
using testing::TempDir;

class LimitSetterTest : public ::testing::Test {
 protected:
  LimitSetterTest() {
    gpus.push_back(probe->add_gpu(gib(24)));
    probe->set_has_limits(true);
  }
  LimitRound carry_out(const LimitSetter::Wanted& wanted) {
    return setter.carry_out(wanted, machine());
  }
  // Carries out with a new LimitSetter, as the next daemon does after a kill.
  LimitRound next_carries_out(const LimitSetter::Wanted& wanted) {
    return LimitSetter(probe, dir.file("limits")).carry_out(wanted, machine());
  }
  LimitSetter::Machine machine() const { return {gpus, "/top/daemon", version}; }
  LimitPlace place(const std::string& of) const { return {of, gpus[0].uuid}; }
  std::optional<Bytes> limit(const std::string& of) const {
    return probe->group_limit(gpus[0].uuid, of);
  }

  TempDir dir;
  std::shared_ptr<FakeGpuProbe> probe = std::make_shared<FakeGpuProbe>();
  std::vector<GpuInfo> gpus;
  std::string version = "615.10";
  LimitSetter setter{probe, dir.file("limits")};
  const std::string group = "/top/user/gpurota-L1-7";
};

TEST(DriverLimit, LeavesRoomForWhatTheDriverLoadsLate) {
  EXPECT_EQ(driver_limit(gib(1), gib(24)), gib(1) + mib(512));
  EXPECT_EQ(driver_limit(gib(16), gib(24)), gib(17));
  EXPECT_EQ(driver_limit(gib(24), gib(24)), gib(24));
  EXPECT_EQ(driver_limit(Bytes(gib(1).count() + 1), gib(24)), gib(1) + mib(514));
}

TEST_F(LimitSetterTest, SetsFollowsAndRemoves) {
  EXPECT_EQ(carry_out({{place(group), gib(2)}}).found.at(place(group)).hard, gib(2));
  EXPECT_EQ(limit(group), gib(2));
  EXPECT_EQ(carry_out({{place(group), gib(3)}}).found.at(place(group)).hard, gib(3));
  EXPECT_EQ(limit(group), gib(3));
  EXPECT_TRUE(carry_out({}).found.empty());
  EXPECT_EQ(limit(group), std::nullopt);
}

TEST_F(LimitSetterTest, SetsNothingTwice) {
  for (int i = 0; i < 3; ++i) carry_out({{place(group), gib(2)}});
  next_carries_out({{place(group), gib(2)}});
  EXPECT_EQ(probe->limits_set(), 1);
  for (int i = 0; i < 3; ++i) next_carries_out({});
  EXPECT_EQ(probe->limits_set(), 2);
}

TEST_F(LimitSetterTest, ADaemonThatWasKilledLeavesItsLimitsToTheNext) {
  carry_out({{place(group), gib(2)}});
  EXPECT_EQ(next_carries_out({{place(group), gib(3)}}).found.at(place(group)).others_group, "");
  EXPECT_EQ(limit(group), gib(3));
  next_carries_out({});
  EXPECT_EQ(limit(group), std::nullopt);
}

// The file has the limit before the driver has it.
TEST_F(LimitSetterTest, ADaemonThatWasKilledWhileItSetALimitIsKnownToHaveDoneSo) {
  probe->set_limit_error(Error{Code::kInternal, 0, "killed"});
  carry_out({{place(group), gib(2)}});
  probe->set_limit_error({});
  probe->set_group_limit(gpus[0].uuid, group, gib(2));
  next_carries_out({});
  EXPECT_EQ(limit(group), std::nullopt);
}

TEST_F(LimitSetterTest, ALimitOfSomebodyElseStaysAndCounts) {
  probe->set_group_limit(gpus[0].uuid, group, gib(5));
  const LimitFound found = carry_out({{place(group), gib(2)}}).found.at(place(group));
  EXPECT_EQ(found.hard, gib(5));
  EXPECT_EQ(found.others_group, group);
  carry_out({});
  EXPECT_EQ(limit(group), gib(5));
  EXPECT_EQ(probe->limits_set(), 0);
}

TEST_F(LimitSetterTest, ALimitThatSomebodyElseHasChangedIsTheirs) {
  carry_out({{place(group), gib(2)}});
  probe->set_group_limit(gpus[0].uuid, group, gib(1));
  EXPECT_EQ(carry_out({{place(group), gib(2)}}).found.at(place(group)).others_group, group);
  carry_out({});
  EXPECT_EQ(limit(group), gib(1));
}

// If the driver does not nest limits, a limit below a group with a smaller limit would replace the
// smaller limit.
TEST_F(LimitSetterTest, UnderASmallerLimitOfAGroupAboveNoneIsSet) {
  carry_out({{place(group), gib(4)}});
  probe->set_group_limit(gpus[0].uuid, "/top", gib(3));
  const LimitFound found = carry_out({{place(group), gib(4)}}).found.at(place(group));
  EXPECT_EQ(found.hard, gib(3));
  EXPECT_EQ(found.others_group, "/top");
  EXPECT_EQ(limit(group), std::nullopt);
  EXPECT_EQ(limit("/top"), gib(3));
  EXPECT_EQ(carry_out({{place(group), gib(2)}}).found.at(place(group)).hard, gib(2));
}

TEST_F(LimitSetterTest, AnOddAnswerIsAnErrorOfThatPlaceOnly) {
  probe->set_limit_error(Error{Code::kDenied, 0, "Insufficient Permissions"});
  const LimitFound found = carry_out({{place(group), gib(2)}}).found.at(place(group));
  EXPECT_EQ(found.hard, std::nullopt);
  ASSERT_TRUE(found.error);
  EXPECT_EQ(found.error->code, Code::kDenied);
  probe->set_limit_error({});
  EXPECT_EQ(carry_out({{place(group), gib(2)}}).found.at(place(group)).hard, gib(2));
}

TEST_F(LimitSetterTest, ALimitThatCannotBeRemovedIsAProblemUntilItsGroupIsGone) {
  carry_out({{place(group), gib(2)}});
  probe->set_limit_error(Error{Code::kUnavailable, 0, "Unknown Error"});
  EXPECT_EQ(carry_out({}).problems.size(), 1U);
  EXPECT_EQ(next_carries_out({}).problems.size(), 1U);
  probe->set_limit_error(Error{Code::kGone, 0, "Not Found"});
  EXPECT_TRUE(next_carries_out({}).problems.empty());
}

TEST_F(LimitSetterTest, SaysWhereTheDriverHasNoLimitsAndWhetherTheDaemonIsUnderOne) {
  EXPECT_FALSE(carry_out({}).daemon_in);
  probe->set_group_limit(gpus[0].uuid, "/top", gib(3));
  EXPECT_EQ(carry_out({}).daemon_in, place("/top"));
  probe->set_has_limits(false);
  EXPECT_EQ(carry_out({}).unsupported.at(gpus[0].uuid), "no memory limits");
}

TEST_F(LimitSetterTest, AGpuWithoutLimitsIsAskedAgainOnlyUnderAnotherDriver) {
  probe->set_has_limits(false);
  ASSERT_TRUE(carry_out({}).unsupported.contains(gpus[0].uuid));
  probe->set_has_limits(true);
  const LimitRound round = carry_out({{place(group), gib(2)}});
  EXPECT_TRUE(round.unsupported.contains(gpus[0].uuid));
  EXPECT_EQ(round.found.at(place(group)).error->message, "no memory limits");
  version = "615.20";
  EXPECT_TRUE(carry_out({{place(group), gib(2)}}).unsupported.empty());
  EXPECT_EQ(limit(group), gib(2));
}

TEST_F(LimitSetterTest, LimitsOfADriverThatHasNoneAnyMoreAreGone) {
  carry_out({{place(group), gib(2)}});
  probe->set_has_limits(false);
  version = "580.10";
  EXPECT_TRUE(carry_out({}).problems.empty());
  EXPECT_FALSE(std::filesystem::exists(dir.file("limits")));
}

TEST_F(LimitSetterTest, LimitsOfGroupsBelowAreFoundAndStay) {
  const std::string top = dir.file("group"), below = top + "/engine/container";
  std::filesystem::create_directories(below);
  probe->set_group_limit(gpus[0].uuid, below, gib(1));
  const LimitFound found = carry_out({{place(top), gib(2)}}).found.at(place(top));
  EXPECT_EQ(found.hard, gib(2));
  ASSERT_EQ(found.below.size(), 1U);
  EXPECT_EQ(found.below[0].group, below);
  EXPECT_EQ(found.below[0].hard, gib(1));
  carry_out({});
  EXPECT_EQ(limit(below), gib(1));
}

TEST_F(LimitSetterTest, LimitsOfGpurotaAreNobodyElses) {
  const std::string top = dir.file("group"), below = top + "/gpurota-L2-8";
  std::filesystem::create_directories(below);
  const LimitSetter::Wanted wanted{{place(top), gib(2)}, {place(below), gib(3)}};
  carry_out(wanted);
  const LimitRound round = carry_out(wanted);
  EXPECT_TRUE(round.found.at(place(top)).below.empty());
  EXPECT_EQ(round.found.at(place(below)).others_group, "");
  EXPECT_EQ(limit(below), gib(3));
}

TEST_F(LimitSetterTest, AFileThatCannotBeReadIsAProblem) {
  testing::write_file(dir.file("limits"), "something else\n");
  EXPECT_EQ(carry_out({}).problems.size(), 1U);
}

}  // namespace
}  // namespace gpurota::daemon
