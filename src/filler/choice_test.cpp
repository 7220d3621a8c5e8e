#include "filler/choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::filler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const GpuUuid kA{"GPU-a"}, kB{"GPU-b"}, kC{"GPU-c"};

std::vector<FreeGpu> idle(std::vector<GpuUuid> gpus, Duration time = std::chrono::minutes(1)) {
  std::vector<FreeGpu> free;
  for (GpuUuid& gpu : gpus) free.push_back({std::move(gpu), time});
  return free;
}

TEST(Choice, PutsOneOnEachIdleGpuIfNothingElseIsSaid) {
  EXPECT_THAT(choose({{"fold", {}, {}, 0, true}}, idle({kA, kB})),
              ElementsAre(Placement{0, kA}, Placement{0, kB}));
}

TEST(Choice, SharesWhatIsIdleAmongFillers) {
  EXPECT_THAT(choose({{"fold", {}, {}, 1, true}, {"seti", {}, {}, 0, true}}, idle({kA, kB, kC})),
              ElementsAre(Placement{1, kA}, Placement{0, kB}, Placement{1, kC}));
}

TEST(Choice, KeepsToInstancesAndGpus) {
  EXPECT_THAT(choose({{"one", {}, 1, 0, true}}, idle({kA, kB})), ElementsAre(Placement{0, kA}));
  EXPECT_THAT(choose({{"one", {}, 1, 1, true}}, idle({kA, kB})), IsEmpty());
  EXPECT_THAT(choose({{"b", {kB}, {}, 0, true}}, idle({kA, kB})), ElementsAre(Placement{0, kB}));
}

TEST(Choice, LeavesOutThoseThatMayNotStart) {
  EXPECT_THAT(choose({{"paused", {}, {}, 0, false}}, idle({kA})), IsEmpty());
}

TEST(Choice, LeavesAGpuAloneUntilItHasBeenIdleForLongEnough) {
  const Candidate patient{"patient", {}, {}, 0, true, std::chrono::minutes(5)};
  EXPECT_THAT(choose({patient}, idle({kA})), IsEmpty());
  EXPECT_THAT(choose({patient, {"hasty", {}, {}, 7, true}}, idle({kA})),
              ElementsAre(Placement{1, kA}));
  EXPECT_THAT(choose({patient}, idle({kA}, std::chrono::minutes(5))),
              ElementsAre(Placement{0, kA}));
}

}  // namespace
}  // namespace gpurota::filler
