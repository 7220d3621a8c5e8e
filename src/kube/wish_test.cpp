#include "kube/wish.h"

#include <gtest/gtest.h>

namespace gpurota::kube {
namespace {

std::set<Device> devices_of(Resource resource, const std::vector<std::string>& ids) {
  return parse_device_ids(resource, ids).value_or(std::set<Device>());
}

TEST(Wish, UnitsOfMemoryAreASliceOfTheirGpu) {
  const auto wish =
      lease_wish(Resource::kMemory, devices_of(Resource::kMemory, {"a::7", "a::2"}), {});
  ASSERT_TRUE(wish);
  EXPECT_EQ(wish->memory, (SizeSpec{gib(2), 0}));
  EXPECT_EQ(wish->gpu_ids, std::vector<std::string>{"a"});
}

TEST(Wish, MemoryOfTwoGpusIsRefusedWithTheRemedy) {
  const auto wish =
      lease_wish(Resource::kMemory, devices_of(Resource::kMemory, {"a::7", "b::2"}), {});
  ASSERT_FALSE(wish);
  EXPECT_NE(wish.error().message.find("delete the pod"), std::string::npos);
}

TEST(Wish, WholeGpusMakeAnExclusiveLease) {
  const auto wish = lease_wish(Resource::kGpu, devices_of(Resource::kGpu, {"a", "b"}), {});
  ASSERT_TRUE(wish);
  EXPECT_EQ(wish->gpu_ids->size(), 2u);
  EXPECT_FALSE(wish->memory);
}

TEST(Wish, ATurnHasTheMemoryThatTheRulesSay) {
  Rules rules;
  auto wish = lease_wish(Resource::kTurn, devices_of(Resource::kTurn, {"a::0"}), rules);
  ASSERT_TRUE(wish);
  EXPECT_TRUE(wish->swap.value_or(false));
  EXPECT_FALSE(wish->memory);
  rules.turn_memory = gib(4);
  wish = lease_wish(Resource::kTurn, devices_of(Resource::kTurn, {"a::0"}), rules);
  EXPECT_EQ(wish->memory, (SizeSpec{gib(4), 0}));
}

TEST(Wish, TwoTurnsOnOneGpuAreRefused) {
  EXPECT_FALSE(lease_wish(Resource::kTurn, devices_of(Resource::kTurn, {"a::0", "a::1"}), {}));
}

TEST(DeviceIds, AreReadAsTheyAreWritten) {
  const Device device{GpuUuid{"GPU-1"}, 12};
  EXPECT_EQ(device_id(Resource::kMemory, device), "GPU-1::12");
  EXPECT_EQ(parse_device_id(Resource::kMemory, "GPU-1::12"), device);
  EXPECT_EQ(parse_device_id(Resource::kGpu, "GPU-1"), (Device{GpuUuid{"GPU-1"}, 0}));
}

TEST(DeviceIds, OfAnotherFormAreRefused) {
  for (const char* id :
       {"", "GPU-1", "GPU-1::", "GPU-1::-1", "GPU-1::1x", "::1", "GPU-1::99999999999"}) {
    EXPECT_FALSE(parse_device_id(Resource::kMemory, id)) << id;
  }
  EXPECT_FALSE(parse_device_id(Resource::kGpu, "GPU-1::0"));
  EXPECT_FALSE(parse_device_ids(Resource::kGpu, {}));
  EXPECT_FALSE(parse_device_ids(Resource::kGpu, {"a", "a"}));
}

}  // namespace
}  // namespace gpurota::kube
