#include "kube/dra/slice.h"

#include "kube/api/json_internal.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace gpurota::kube {
namespace {

NodeGpu gpu(const char* uuid) {
  NodeGpu gpu;
  gpu.uuid = GpuUuid{uuid};
  gpu.memory = gib(80);
  gpu.free = gpu.free_for_turns = gib(79) + mib(100);
  gpu.idle = true;
  return gpu;
}

SliceDevice device(const std::vector<SliceDevice>& devices, const char* name) {
  const auto at = std::find_if(devices.begin(), devices.end(),
                               [&](const SliceDevice& each) { return each.name == name; });
  return at == devices.end() ? SliceDevice{} : *at;
}
bool flag(const SliceDevice& device, const char* name) {
  return std::get<bool>(device.attributes.at(name));
}
std::vector<SliceDevice> of(const NodeGpu& gpu, const std::vector<Held>& held = {}) {
  return slice_devices({gpu}, held, {"580.159.04", "13.0"}, gib(200), {});
}

TEST(Slice, CountsWholeUnitsOfWhatIsFree) {
  const auto devices = of(gpu("GPU-A"));
  ASSERT_EQ(devices.size(), 3u);
  const SliceDevice memory = device(devices, "gpu-a");
  EXPECT_EQ(memory.memory, gib(79));
  EXPECT_EQ(memory.usual, gib(79)) << "who does not say how much has all of it";
  EXPECT_TRUE(flag(memory, "whole"));
}

TEST(Slice, DescribesDevicesForSelectors) {
  NodeGpu hopper = gpu("GPU-A");
  hopper.compute = "9.0";
  const auto attributes = device(of(hopper), "gpu-a").attributes;
  EXPECT_EQ(std::get<std::string>(attributes.at("architecture")), "Hopper");
  EXPECT_EQ(std::get<Version>(attributes.at("cudaComputeCapability")).text, "9.0.0");
  EXPECT_EQ(std::get<Version>(attributes.at("cudaDriverVersion")).text, "13.0.0");
  EXPECT_FALSE(device(of(gpu("GPU-A")), "gpu-a").attributes.contains("architecture"));
  EXPECT_EQ(architecture_of("8.9"), "Ada Lovelace");
  EXPECT_EQ(architecture_of("8.6"), "Ampere");
  EXPECT_EQ(architecture_of("99.0"), "");
}

TEST(Slice, HasNoTurnsOfAGpuWhoseMemoryCannotMove) {
  NodeGpu unified = gpu("GPU-A");
  unified.takes_turns = false;
  EXPECT_EQ(of(unified).size() + 1, of(gpu("GPU-A")).size());
}

TEST(Slice, PlaceOfAGpuHasTheStandardAttributeNames) {
  NodeGpu joined = gpu("GPU-A");
  joined.pci = "00000000:01:00.0";
  joined.place = {"0000:01:00.0", "pci0000:00", 1};
  joined.nvlink_group = GpuUuid{"GPU-0"};
  const auto attributes = device(of(joined), "gpu-a").attributes;
  const auto text = [&](const char* name) { return std::get<std::string>(attributes.at(name)); };
  EXPECT_EQ(text("pciBusID"), "00000000:01:00.0");
  EXPECT_EQ(text("resource.kubernetes.io/pciBusID"), "0000:01:00.0");
  EXPECT_EQ(text("resource.kubernetes.io/pcieRoot"), "pci0000:00");
  EXPECT_EQ(std::get<std::int64_t>(attributes.at("resource.kubernetes.io/numaNode")), 1);
  EXPECT_EQ(text("nvlinkGroup"), "GPU-0");
  const auto bare = device(of(gpu("GPU-A")), "gpu-a").attributes;
  for (const char* const name : {"resource.kubernetes.io/pcieRoot", "numaNode", "nvlinkGroup"}) {
    EXPECT_FALSE(bare.contains(name)) << name;
  }
}

TEST(Slice, CutsALongTextBetweenTwoCharacters) {
  SliceDevice odd;
  odd.name = "gpu-a";
  odd.attributes["productName"] =
      std::string(63, 'a') + "\u00e9\xff";  // the limit, 64 bytes, cuts a character
  const auto specs = slice_specs({odd}, "node", 1, false);
  ASSERT_EQ(specs.size(), 1u);
  EXPECT_NE(specs[0].find("{\"string\":\"" + std::string(63, 'a') + "\"}"), std::string::npos)
      << specs[0];
}

TEST(Slice, CapacityIncludesMemoryOfClaimsButNotOfOthers) {
  NodeGpu taken = gpu("GPU-A");
  taken.free = gib(79) - gib(30) - gib(20);
  taken.idle = false;
  const Held claim{Resource::kMemory, taken.uuid, gib(30), true};
  const SliceDevice memory = device(of(taken, {claim}), "gpu-a");
  EXPECT_EQ(memory.memory, gib(59)) << "20 GiB are somebody else's";
  EXPECT_FALSE(flag(memory, "whole"));
  EXPECT_TRUE(flag(memory, "available"));
}

TEST(Slice, ClaimWithoutALeaseCountsOnce) {
  const Held claim{Resource::kMemory, GpuUuid{"GPU-A"}, gib(30), false};
  EXPECT_EQ(device(of(gpu("GPU-A"), {claim}), "gpu-a").memory, gib(79));
}

TEST(Slice, ClaimOfAWholeGpuLeavesNoDeviceAvailable) {
  NodeGpu taken = gpu("GPU-A");
  taken.free = taken.free_for_turns = Bytes();
  taken.idle = false;
  const auto devices = of(taken, {{Resource::kGpu, taken.uuid, gib(79), true}});
  EXPECT_EQ(device(devices, "gpu-a").memory, gib(79));
  for (const char* const name : {"gpu-a-whole", "gpu-a", "gpu-a-turns"}) {
    EXPECT_FALSE(flag(device(devices, name), "available")) << name;
  }
}

TEST(Slice, TurnsHaveTheGpusMemoryAndTheHosts) {
  const SliceDevice turns = device(of(gpu("GPU-A")), "gpu-a-turns");
  EXPECT_EQ(turns.memory, gib(279));
  EXPECT_EQ(turns.usual, gib(79));
}

TEST(Slice, ClaimOfTurnsIsLimitedToItsGpu) {
  NodeGpu beside = gpu("GPU-A");
  beside.free_for_turns = gib(20);
  const SliceDevice turns = device(of(beside), "gpu-a-turns");
  EXPECT_EQ(turns.most, gib(20));
  EXPECT_GT(turns.memory, turns.most) << "several together have what the host has, too";
  const auto spec = slice_specs({turns}, "node-1", 1, false).front();
  EXPECT_NE(spec.find(R"("max":"20Gi")"), std::string::npos) << spec;
}

TEST(Slice, TaintsDrainedLostAndFaultyDevices) {
  NodeGpu drained = gpu("GPU-A"), lost = gpu("GPU-A"), ecc = gpu("GPU-A");
  drained.in_service = false;
  lost.works = false;
  ecc.ecc_errors = 2;
  using Keys = std::vector<std::string>;
  EXPECT_EQ(device(of(drained), "gpu-a").taints, Keys{"gpurota.dev/drained"});
  EXPECT_EQ(device(of(lost), "gpu-a").taints, Keys{"gpurota.dev/lost"});
  EXPECT_EQ(device(of(ecc), "gpu-a-turns").taints, Keys{"gpurota.dev/ecc-errors"});
  EXPECT_FALSE(flag(device(of(drained), "gpu-a"), "available"));
  EXPECT_GE(device(of(lost), "gpu-a").memory, gib(1)) << "a capacity of nothing is an error";
}

TEST(Slice, VersionsAreSemantic) {
  EXPECT_EQ(semantic_version("580.159.04"), "580.159.4");
  EXPECT_EQ(semantic_version("13.0"), "13.0.0");
  EXPECT_EQ(semantic_version("535.00.0.7"), "535.0.0");
  EXPECT_EQ(semantic_version("a.b"), "");
  EXPECT_EQ(semantic_version(""), "");
}

std::vector<std::string> specs_of_40_gpus(bool counters) {
  std::vector<NodeGpu> gpus;
  for (int i = 0; i < 40; ++i) gpus.push_back(gpu(("GPU-" + std::to_string(i)).c_str()));
  return slice_specs(slice_devices(gpus, {}, {"1.2.3", ""}, gib(1), {}), "node-1", 7, counters);
}

TEST(Slice, SpecsHaveAtMost64DevicesAndSayHowManyThereAre) {
  const auto specs = specs_of_40_gpus(false);
  ASSERT_EQ(specs.size(), 2u);
  for (const std::string& spec : specs) {
    EXPECT_NE(spec.find(R"("generation":7)"), std::string::npos);
    EXPECT_NE(spec.find(R"("resourceSliceCount":2)"), std::string::npos);
    EXPECT_EQ(spec.find("ounter"), std::string::npos);
  }
}

std::vector<std::string> names_of(const std::string& spec) {
  std::vector<std::string> names;
  const Json json = Json::parse(spec);
  for (const Json& device : json["devices"]) names.push_back(device["name"]);
  return names;
}

TEST(Slice, WithoutCountersWholeGpusComeFirstAndSharedDevicesFromTheLastGpuOn) {
  const auto devices = slice_devices({gpu("GPU-A"), gpu("GPU-B")}, {}, {"1.2.3", ""}, gib(1), {});
  const auto specs = [&](bool counters) { return slice_specs(devices, "node-1", 7, counters); };
  EXPECT_EQ(names_of(specs(false).back()),
            (std::vector<std::string>{"gpu-a-whole", "gpu-b-whole", "gpu-b-turns", "gpu-b",
                                      "gpu-a-turns", "gpu-a"}));
  EXPECT_EQ(names_of(specs(true).back()),
            (std::vector<std::string>{"gpu-a-whole", "gpu-a", "gpu-a-turns", "gpu-b-whole", "gpu-b",
                                      "gpu-b-turns"}));
}

TEST(Slice, CountersAreInSlicesOfTheirOwnEightInEachAndComeFirst) {
  const auto specs = specs_of_40_gpus(true);
  ASSERT_EQ(specs.size(), 7u);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    EXPECT_NE(specs[i].find(R"("resourceSliceCount":7)"), std::string::npos);
    EXPECT_EQ(specs[i].find("sharedCounters") != std::string::npos, i < 5) << i;
    EXPECT_EQ(specs[i].find("\"devices\"") != std::string::npos, i >= 5) << i;
  }
}

TEST(Slice, EachDeviceUsesTheWholeSharedCounter) {
  for (const SliceDevice& each : of(gpu("GPU-A"))) {
    EXPECT_EQ(each.counter, "gpu-a");
    EXPECT_EQ(each.counted, gib(80)) << each.name;
    EXPECT_EQ(each.is_shared, each.name != "gpu-a-whole");
  }
}

TEST(Slice, MixedSlicesAndTurnsShareTheCounterOfTheGpu) {
  SliceRules mixed;
  mixed.mixed = true;
  const auto devices = slice_devices({gpu("GPU-A")}, {}, {"1.2.3", ""}, gib(200), mixed);
  EXPECT_EQ(device(devices, "gpu-a-whole").counted, gib(80));
  EXPECT_EQ(device(devices, "gpu-a").counted + device(devices, "gpu-a-turns").counted, gib(80));
}

TEST(Slice, WholeGpuIsForOneClaimAndHasNoPolicy) {
  const SliceDevice whole = device(of(gpu("GPU-A")), "gpu-a-whole");
  EXPECT_TRUE(flag(whole, "whole"));
  EXPECT_EQ(whole.memory, gib(80));
  const auto spec = slice_specs({whole}, "node-1", 1, false).front();
  EXPECT_EQ(spec.find("allowMultipleAllocations"), std::string::npos);
  EXPECT_EQ(spec.find("requestPolicy"), std::string::npos);
}

TEST(Slice, ACapacityOfOneUnitHasNoStep) {
  NodeGpu full = gpu("GPU-A");
  full.free = gib(1);
  const auto spec = slice_specs({device(of(full), "gpu-a")}, "node-1", 1, false).front();
  EXPECT_EQ(spec.find("step"), std::string::npos);
  EXPECT_NE(spec.find(R"("value":"1Gi")"), std::string::npos);
}

}  // namespace
}  // namespace gpurota::kube
