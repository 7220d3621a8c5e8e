#include "kube/packing.h"

#include <gtest/gtest.h>

namespace gpurota::kube {
namespace {

using Ids = std::vector<std::string>;

TEST(Packing, MemoryIsOfOneGpuTheFullestThatHasRoom) {
  const Ids available = {"a::0", "a::1", "a::2", "b::0", "b::1", "c::0"};
  EXPECT_EQ(prefer(Resource::kMemory, available, {}, 2, {}), (Ids{"b::0", "b::1"}));
  EXPECT_EQ(prefer(Resource::kMemory, available, {}, 3, {}), (Ids{"a::0", "a::1", "a::2"}));
}

TEST(Packing, RequiredDevicesDecideTheGpu) {
  const Ids available = {"a::0", "a::1", "b::0", "b::1", "b::2"};
  EXPECT_EQ(prefer(Resource::kMemory, available, {"b::1"}, 2, {}), (Ids{"b::1", "b::0"}));
}

TEST(Packing, MoreThanAnyGpuHasIsTakenAllTheSame) {
  // No error here: a lease that fits no GPU is refused before the container starts, and kubelet
  // shows the reason.
  EXPECT_EQ(prefer(Resource::kMemory, {"a::0", "b::0", "b::1"}, {}, 3, {}),
            (Ids{"b::0", "b::1", "a::0"}));
}

TEST(Packing, TurnsAreWhereTheFewestWait) {
  const Ids available = {"a::3", "b::1", "b::2", "c::2", "c::3", "c::4"};
  EXPECT_EQ(prefer(Resource::kTurn, available, {}, 1, {}), Ids{"c::2"});
  EXPECT_EQ(prefer(Resource::kTurn, available, {}, 3, {}), (Ids{"c::2", "b::1", "a::3"}));
}

TEST(Packing, WholeGpusAreOfOneNumaNode) {
  const std::map<GpuUuid, int> numa = {{GpuUuid{"a"}, 0},
                                       {GpuUuid{"b"}, 1},
                                       {GpuUuid{"c"}, 1},
                                       {GpuUuid{"d"}, 0},
                                       {GpuUuid{"e"}, 0}};
  const Ids available = {"a", "b", "c", "d", "e"};
  EXPECT_EQ(prefer(Resource::kGpu, available, {}, 2, numa), (Ids{"b", "c"}));
  EXPECT_EQ(prefer(Resource::kGpu, available, {}, 3, numa), (Ids{"a", "d", "e"}));
  EXPECT_EQ(prefer(Resource::kGpu, available, {"d"}, 2, numa), (Ids{"d", "a"}));
}

TEST(Packing, TakesNoMoreThanItIsAskedForAndUnknownIdsLast) {
  EXPECT_EQ(prefer(Resource::kMemory, {"junk", "a::0", "a::1"}, {}, 1, {}), Ids{"a::0"});
  EXPECT_EQ(prefer(Resource::kMemory, {"junk"}, {}, 1, {}), Ids{"junk"});
  EXPECT_EQ(prefer(Resource::kGpu, {}, {}, 2, {}), Ids{});
}

}  // namespace
}  // namespace gpurota::kube
