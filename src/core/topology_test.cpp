#include "core/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

GpuUuid gpu(const char* name) { return GpuUuid{name}; }

TEST(Topology, WithoutNvlinkNoGpuIsInAGroup) {
  EXPECT_THAT(nvlink_groups({}), IsEmpty());
  EXPECT_THAT(nvlink_groups({{gpu("a"), gpu("b"), Closeness::kOneSwitch}}), IsEmpty());
}

TEST(Topology, PairsAreGroupsOfTheirOwn) {
  EXPECT_THAT(nvlink_groups({{gpu("b"), gpu("a"), Closeness::kNvlink},
                             {gpu("c"), gpu("d"), Closeness::kNvlink},
                             {gpu("a"), gpu("c"), Closeness::kHostBridge}}),
              ElementsAre(Pair(gpu("a"), gpu("a")), Pair(gpu("b"), gpu("a")),
                          Pair(gpu("c"), gpu("c")), Pair(gpu("d"), gpu("c"))));
}

TEST(Topology, AGpuReachedThroughOthersIsInTheGroupInAnyOrderOfLinks) {
  EXPECT_THAT(nvlink_groups({{gpu("c"), gpu("d"), Closeness::kNvlink},
                             {gpu("a"), gpu("b"), Closeness::kNvlink},
                             {gpu("d"), gpu("b"), Closeness::kNvlink}}),
              ElementsAre(Pair(gpu("a"), gpu("a")), Pair(gpu("b"), gpu("a")),
                          Pair(gpu("c"), gpu("a")), Pair(gpu("d"), gpu("a"))));
}

}  // namespace
}  // namespace gpurota
