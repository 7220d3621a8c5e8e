#include "filler/choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::filler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const GpuUuid kA{"GPU-a"}, kB{"GPU-b"}, kC{"GPU-c"};

TEST(Choice, PutsOneOnEachIdleGpuIfNothingElseIsSaid) {
  EXPECT_THAT(choose({{"fold", {}, {}, 0, true}}, {kA, kB}),
              ElementsAre(Placement{0, kA}, Placement{0, kB}));
}

TEST(Choice, SharesWhatIsIdleAmongFillers) {
  EXPECT_THAT(choose({{"fold", {}, {}, 1, true}, {"seti", {}, {}, 0, true}}, {kA, kB, kC}),
              ElementsAre(Placement{1, kA}, Placement{0, kB}, Placement{1, kC}));
}

TEST(Choice, KeepsToInstancesAndGpus) {
  EXPECT_THAT(choose({{"one", {}, 1, 0, true}}, {kA, kB}), ElementsAre(Placement{0, kA}));
  EXPECT_THAT(choose({{"one", {}, 1, 1, true}}, {kA, kB}), IsEmpty());
  EXPECT_THAT(choose({{"b", {kB}, {}, 0, true}}, {kA, kB}), ElementsAre(Placement{0, kB}));
}

TEST(Choice, LeavesOutThoseThatMayNotStart) {
  EXPECT_THAT(choose({{"paused", {}, {}, 0, false}}, {kA}), IsEmpty());
}

}  // namespace
}  // namespace gpurota::filler
