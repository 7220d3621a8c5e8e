#include "daemon/gpus/gpu_settings.h"

#include <gtest/gtest.h>

namespace gpurota::daemon {
namespace {

TEST(GpuSettings, ReserveOfUnifiedMemoryStaysFree) {
  GpuInfo gpu;
  gpu.memory = gib(120);
  config::Config config;
  EXPECT_EQ(settings_of(gpu, config, {}).capacity, gib(120));
  gpu.unified = true;
  EXPECT_EQ(settings_of(gpu, config, {}).capacity, gib(108));
  config.unified_reserve = {gib(20), 0};
  EXPECT_EQ(settings_of(gpu, config, {}).capacity, gib(100));
}

TEST(GpuSettings, ACapacityOfTheSiteLeavesTheReserveAlone) {
  GpuInfo gpu;
  gpu.memory = gib(120);
  gpu.unified = true;
  config::Config config;
  config.turns.gpus["0"].capacity = SizeSpec{gib(64), 0};
  EXPECT_EQ(settings_of(gpu, config, {}).capacity, gib(64));
  config.turns.gpus["0"].capacity = SizeSpec{gib(119), 0};
  EXPECT_EQ(settings_of(gpu, config, {}).capacity, gib(108));
}

}  // namespace
}  // namespace gpurota::daemon
