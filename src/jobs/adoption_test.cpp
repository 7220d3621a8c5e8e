#include "jobs/adoption.h"

#include <gtest/gtest.h>

namespace gpurota::jobs {
namespace {

RecordedRun recorded() { return {100, 5000, "boot-a", "/gpurota.slice/job-7"}; }
ObservedRun same() { return {"boot-a", 5000, false, "/gpurota.slice/job-7", true}; }

TEST(Adoption, TakesTheVeryProcessBack) {
  EXPECT_EQ(judge(recorded(), same()), Adoption::kRunning);
}

TEST(Adoption, TakesItBackFromACgroupBelowItsOwn) {
  ObservedRun observed = same();
  observed.cgroup += "/inner";
  EXPECT_EQ(judge(recorded(), observed), Adoption::kRunning);
}

TEST(Adoption, NeverTakesAProcessThatHasGotThePidSince) {
  ObservedRun observed = same();
  observed.start_ticks = 5001;
  observed.cgroup_populated = false;
  EXPECT_EQ(judge(recorded(), observed), Adoption::kEnded);
}

TEST(Adoption, NeverTakesTheSamePidAndTicksOfAnotherBoot) {
  ObservedRun observed = same();
  observed.boot_id = "boot-b";
  EXPECT_EQ(judge(recorded(), observed), Adoption::kRebooted);
  RecordedRun without = recorded();
  without.boot_id.clear();
  observed.boot_id.clear();
  EXPECT_EQ(judge(without, observed), Adoption::kRebooted);
}

TEST(Adoption, NeverTakesOneWhoseCgroupOnlyBeginsLikeOurs) {
  ObservedRun observed = same();
  observed.cgroup = "/gpurota.slice/job-77";
  observed.cgroup_populated = false;
  EXPECT_EQ(judge(recorded(), observed), Adoption::kEnded);
}

TEST(Adoption, OfARunWhoseChildrenLiveOnFindsTheRemnants) {
  ObservedRun observed = same();
  observed.start_ticks.reset();
  EXPECT_EQ(judge(recorded(), observed), Adoption::kRemnants);
  observed = same();
  observed.is_zombie = true;
  EXPECT_EQ(judge(recorded(), observed), Adoption::kRemnants);
}

TEST(Adoption, WithoutACgroupGoesByPidAndStartTime) {
  RecordedRun run = recorded();
  run.cgroup.clear();
  EXPECT_EQ(judge(run, same()), Adoption::kRunning);
  ObservedRun gone = same();
  gone.start_ticks.reset();
  EXPECT_EQ(judge(run, gone), Adoption::kEnded);
}

}  // namespace
}  // namespace gpurota::jobs
