#include "kube/dra/health.h"

#include <gtest/gtest.h>

namespace gpurota::kube {
namespace {

DeviceHealth of(NodeGpu gpu, bool is_daemon_away = false) {
  gpu.uuid = GpuUuid{"GPU-A"};
  const auto all = device_health({gpu}, is_daemon_away);
  EXPECT_EQ(all.size(), 3u);
  EXPECT_EQ(all.back().device, "gpu-a-turns");
  EXPECT_EQ(all.back().health, all.front().health);
  return all.front();
}

TEST(Health, SaysWhatIsWrongWithAGpu) {
  EXPECT_EQ(of({}), (DeviceHealth{"gpu-a-whole", Health::kHealthy, ""}));
  const DeviceHealth lost = of({.works = false});
  EXPECT_EQ(lost.health, Health::kUnhealthy);
  EXPECT_NE(lost.message.find("lost"), std::string::npos);
  EXPECT_EQ(of({.ecc_errors = 3}).health, Health::kUnhealthy);
}

TEST(Health, ADrainedGpuIsHealthy) {
  const DeviceHealth drained = of({.in_service = false});
  EXPECT_EQ(drained.health, Health::kHealthy) << "what runs there goes on";
  EXPECT_NE(drained.message.find("drained"), std::string::npos);
}

TEST(Health, HealthIsUnknownWithoutTheDaemon) {
  EXPECT_EQ(of({}, true).health, Health::kUnknown);
  EXPECT_EQ(of({.works = false}, true).health, Health::kUnknown);
}

}  // namespace
}  // namespace gpurota::kube
