#include "daemon/gpus/gpu_classes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

GpuInfo gpu(int index, const char* name, Bytes memory, int cc) {
  GpuInfo info;
  info.index = index;
  info.uuid = GpuUuid{"GPU-" + std::to_string(index)};
  info.name = name;
  info.memory = memory;
  info.compute_major = cc / 10;
  info.compute_minor = cc % 10;
  return info;
}

class GpuClassesTest : public ::testing::Test {
 protected:
  GpuClassesTest() {
    GpuInfo instance = gpu(0, "NVIDIA A100 MIG 1g.10gb", gib(10), 80);
    instance.uuid = GpuUuid{"MIG-a"};
    instance.parent = GpuUuid{"GPU-2"};
    gpus.push_back(instance);
  }
  std::vector<GpuUuid> of(const std::string& name) { return *gpus_of_class(classes, name, gpus); }

  std::vector<GpuInfo> gpus = {gpu(0, "NVIDIA H100 80GB HBM3", gib(80), 90),
                               gpu(1, "NVIDIA L4", gib(24), 89),
                               gpu(2, "NVIDIA A100 80GB PCIe", gib(80), 80)};
  GpuClasses classes = {
      {"big", {{}, gib(40), {}, {}}},   {"new", {{}, {}, "8.9", {}}},
      {"h", {"h100", {}, {}, {}}},      {"desk", {{}, {}, {}, {"1", "GPU-2", "7"}}},
      {"gone", {{}, gib(200), {}, {}}}, {"big-desk", {{}, gib(40), {}, {"1", "2"}}}};
};

TEST_F(GpuClassesTest, AClassIsAllThatItsConditionsAllow) {
  EXPECT_THAT(of("big"), ElementsAre(gpus[0].uuid, gpus[2].uuid));
  EXPECT_THAT(of("new"), ElementsAre(gpus[0].uuid, gpus[1].uuid));
  EXPECT_THAT(of("h"), ElementsAre(gpus[0].uuid));
  EXPECT_THAT(of("big-desk"), ElementsAre(gpus[2].uuid)) << "each of them has to hold";
}

TEST_F(GpuClassesTest, NamedGpusIncludeTheirInstances) {
  EXPECT_THAT(of("desk"), ElementsAre(gpus[1].uuid, gpus[2].uuid, gpus[3].uuid));
  EXPECT_THAT(classes_of(classes, gpus[1], gpus), ElementsAre("desk", "new"));
}

TEST_F(GpuClassesTest, UnknownClassIsRefusedWithTheKnownOnes) {
  const auto refused = gpus_of_class(classes, "deks", gpus);
  EXPECT_EQ(refused.error().code, Code::kInvalid);
  EXPECT_THAT(
      refused.error().message,
      HasSubstr(
          "'deks' of GPUs: the site has big, big-desk, desk, gone, h, new; did you mean desk?"));
  EXPECT_THAT(gpus_of_class({}, "big", gpus).error().message, HasSubstr("the site has none"));
}

TEST_F(GpuClassesTest, ClassWithoutAGpuIsRefused) {
  EXPECT_THAT(gpus_of_class(classes, "gone", gpus).error().message,
              HasSubstr("no GPU of class 'gone'"));
}

}  // namespace
}  // namespace gpurota::daemon
