#include "kube/offer.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace gpurota::kube {
namespace {

NodeGpu gpu_of(const std::string& name, Bytes memory = gib(8)) {
  NodeGpu gpu;
  gpu.uuid = GpuUuid{name};
  gpu.memory = memory;
  gpu.free = memory - mib(100);
  gpu.free_for_turns = gpu.free;
  gpu.idle = true;
  return gpu;
}

std::size_t healthy(const std::vector<Offered>& offered) {
  return static_cast<std::size_t>(std::count_if(offered.begin(), offered.end(),
                                                [](const Offered& each) { return each.healthy; }));
}

bool is_healthy(const std::vector<Offered>& offered, const std::string& id) {
  return std::any_of(offered.begin(), offered.end(),
                     [&](const Offered& each) { return each.id == id && each.healthy; });
}

Taken taken_of(Resource resource, const std::string& gpu, int number, bool leased) {
  return {resource, {GpuUuid{gpu}, number}, leased};
}

TEST(Offer, CountsTheMemoryOfEachGpuInUnits) {
  const auto offered = offer(Resource::kMemory, {gpu_of("a"), gpu_of("b", gib(4))}, {}, {}, {});
  EXPECT_EQ(offered.size(), 12u);
  EXPECT_EQ(healthy(offered), 10u) << "what is left of each is no whole unit";
  EXPECT_EQ(offered.front().id, "a::0");
}

TEST(Offer, DeviceInUseByOthersIsUnavailable) {
  NodeGpu gpu = gpu_of("a");
  gpu.free = gib(3);
  EXPECT_EQ(healthy(offer(Resource::kMemory, {gpu}, {}, {}, {})), 3u);
}

TEST(Offer, DeviceInUseStaysHealthy) {
  NodeGpu gpu = gpu_of("a");
  gpu.free = gib(1);
  gpu.in_service = false;
  const auto offered =
      offer(Resource::kMemory, {gpu}, {taken_of(Resource::kMemory, "a", 5, true)}, {}, {});
  EXPECT_EQ(healthy(offered), 1u);
  EXPECT_TRUE(is_healthy(offered, "a::5"));
}

TEST(Offer, PromisedDeviceIsNotOffered) {
  NodeGpu gpu = gpu_of("a");
  gpu.free = gib(3);
  const std::vector<Taken> promised = {taken_of(Resource::kMemory, "a", 0, false),
                                       taken_of(Resource::kMemory, "a", 1, false)};
  EXPECT_EQ(healthy(offer(Resource::kMemory, {gpu}, promised, {}, {})), 3u);
  EXPECT_EQ(healthy(offer(Resource::kGpu, {gpu}, promised, {}, {})), 0u)
      << "a GPU of whose memory somebody has some is not whole";
}

TEST(Offer, AGpuThatIsPromisedWholeHasNoMemoryForOthers) {
  const std::vector<Taken> promised = {taken_of(Resource::kGpu, "a", 0, false)};
  EXPECT_EQ(healthy(offer(Resource::kMemory, {gpu_of("a")}, promised, {}, {})), 0u);
  EXPECT_EQ(healthy(offer(Resource::kTurn, {gpu_of("a")}, promised, {}, gib(80))), 0u);
  EXPECT_EQ(healthy(offer(Resource::kGpu, {gpu_of("a")}, promised, {}, {})), 1u);
}

TEST(Offer, NothingOfAGpuThatIsLostIsHealthy) {
  NodeGpu gpu = gpu_of("a");
  gpu.works = false;
  const std::vector<Taken> had = {taken_of(Resource::kMemory, "a", 0, true)};
  EXPECT_EQ(healthy(offer(Resource::kMemory, {gpu}, had, {}, {})), 0u);
  EXPECT_EQ(healthy(offer(Resource::kGpu, {gpu}, {}, {}, {})), 0u);
}

TEST(Offer, TurnsAreBoundedByTheHostsMemory) {
  EXPECT_EQ(offer(Resource::kTurn, {gpu_of("a")}, {}, {}, Bytes()).size(), 1u);
  EXPECT_EQ(offer(Resource::kTurn, {gpu_of("a")}, {}, {}, gib(17)).size(), 3u);
  EXPECT_EQ(offer(Resource::kTurn, {gpu_of("a"), gpu_of("b")}, {}, {}, gib(17)).size(), 4u);
  Rules rules;
  rules.turn_memory = gib(2);
  EXPECT_EQ(offer(Resource::kTurn, {gpu_of("a")}, {}, rules, gib(17)).size(), 9u);
  rules.turns = 4;
  EXPECT_EQ(offer(Resource::kTurn, {gpu_of("a")}, {}, rules, gib(17)).size(), 4u);
}

TEST(Offer, DeviceInUseStaysOfferedWhenRulesChange) {
  const auto offered =
      offer(Resource::kTurn, {gpu_of("a")}, {taken_of(Resource::kTurn, "a", 7, true)}, {}, Bytes());
  EXPECT_TRUE(is_healthy(offered, "a::7"));
}

TEST(Offer, SaysTheNumaNodeOfEach) {
  NodeGpu gpu = gpu_of("a");
  gpu.place.numa = 1;
  EXPECT_EQ(offer(Resource::kGpu, {gpu}, {}, {}, {}).front().numa, 1);
}

TEST(Offer, HasNoTurnsWhereMemoryCannotMove) {
  NodeGpu unified;
  unified.memory = gib(120);
  unified.takes_turns = false;
  EXPECT_EQ(turns_of(unified, 1, Rules(), gib(60)), 0);
}

}  // namespace
}  // namespace gpurota::kube
