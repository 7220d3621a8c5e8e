#include "core/gpu_wishes.h"

#include <gtest/gtest.h>

namespace gpurota {
namespace {

TEST(GpuWishes, TypeMatchesWordsOfTheModelName) {
  for (const char* type : {"h100", "H100", "nvidia h100", "h100-80gb", "", "HBM3"}) {
    EXPECT_TRUE(is_of_type(type, "NVIDIA H100 80GB HBM3")) << type;
  }
  for (const char* type : {"h10", "a100", "80gb h100", "h100 40gb"}) {
    EXPECT_FALSE(is_of_type(type, "NVIDIA H100 80GB HBM3")) << type;
  }
  EXPECT_FALSE(is_of_type("a10", "NVIDIA A100-SXM4-40GB"));
  EXPECT_TRUE(is_of_type("a100 40gb", "NVIDIA A100-SXM4-40GB"));
  EXPECT_TRUE(is_of_type("1g.10gb", "NVIDIA H100 80GB HBM3 MIG 1g.10gb"));
  EXPECT_TRUE(is_of_type("rtx 6000", "NVIDIA RTX PRO 6000 Blackwell"));
}

TEST(GpuWishes, SizeAndComputeCapabilityAreMinimums) {
  GpuInfo gpu;
  gpu.name = "NVIDIA A100-SXM4-40GB";
  gpu.memory = gib(40);
  gpu.compute_major = 8;
  gpu.compute_minor = 0;
  GpuWishes wishes;
  EXPECT_TRUE(is_of_kind(wishes, gpu));
  EXPECT_TRUE(wishes.any_kind());
  wishes.min_memory = gib(40);
  wishes.min_cc = 80;
  EXPECT_TRUE(is_of_kind(wishes, gpu));
  wishes.min_cc = 86;
  EXPECT_FALSE(is_of_kind(wishes, gpu));
  wishes.min_cc = 0;
  wishes.min_memory = gib(41);
  EXPECT_FALSE(is_of_kind(wishes, gpu));
}

TEST(GpuWishes, ClassAllowsOnlyItsGpus) {
  GpuInfo gpu;
  gpu.uuid = GpuUuid{"GPU-a"};
  gpu.name = "NVIDIA L4";
  GpuWishes wishes;
  wishes.among = {GpuUuid{"GPU-b"}, GpuUuid{"GPU-a"}};
  EXPECT_FALSE(wishes.any_kind());
  EXPECT_TRUE(is_of_kind(wishes, gpu));
  wishes.type = "h100";
  EXPECT_FALSE(is_of_kind(wishes, gpu)) << "of that model, too";
  wishes.type.clear();
  wishes.among.pop_back();
  EXPECT_FALSE(is_of_kind(wishes, gpu));
}

TEST(GpuWishes, AreDescribedInOneLine) {
  EXPECT_EQ(kind_text({}), "");
  EXPECT_EQ(kind_text({.type = "h100"}), "h100");
  EXPECT_EQ(kind_text({.type = "h100", .min_memory = gib(40), .min_cc = 90}),
            "h100 with at least 40 GiB and compute capability 9.0");
  EXPECT_EQ(kind_text({.gpu_class = "big"}), "class big");
  EXPECT_EQ(kind_text({.type = "h100", .min_memory = gib(40), .gpu_class = "big"}),
            "h100 of class big with at least 40 GiB");
  EXPECT_EQ(kind_text({.min_cc = 80}), "a GPU with compute capability 8.0");
}

}  // namespace
}  // namespace gpurota
