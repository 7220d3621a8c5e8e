#include "kube/container_answer.h"

#include <gtest/gtest.h>

namespace gpurota::kube {
namespace {

using Words = std::vector<std::string>;

ContainerNode node_with_driver() {
  ContainerNode node;
  node.socket_folder = "/run/gpurota/container";
  node.library = "/usr/lib/gpurota/libgpurota.so";
  for (int index = 0; index < 2; ++index) {
    NodeGpu gpu;
    gpu.uuid = GpuUuid{"GPU-" + std::to_string(index)};
    gpu.index = index;
    gpu.label = std::to_string(index);
    node.gpus.push_back(gpu);
    containers::Host host;
    host.preload_file = true;
    host.driver.devices = {"/dev/nvidia" + std::to_string(index), "/dev/nvidiactl"};
    host.driver.programs = {"/usr/lib64/libcuda.so.1"};
    node.hosts[gpu.uuid] = host;
  }
  return node;
}

ContainerAnswer answer_of(Resource resource, const std::vector<GpuUuid>& gpus, GpuGiver giver) {
  const auto answer = container_answer(resource, gpus, "secret", giver, node_with_driver());
  EXPECT_TRUE(answer) << answer.error().message;
  return answer.value_or(ContainerAnswer());
}

bool mounts(const ContainerAnswer& answer, const std::string& at) {
  return std::any_of(answer.mounts.begin(), answer.mounts.end(),
                     [&](const containers::Mount& mount) { return mount.to == at; });
}

TEST(ContainerAnswer, HasTheTokenTheSocketsFolderAndTheLibrary) {
  const auto answer = answer_of(Resource::kMemory, {GpuUuid{"GPU-1"}}, GpuGiver::kFiles);
  EXPECT_EQ(answer.variables.at("GPUROTA_TOKEN"), "secret");
  EXPECT_TRUE(mounts(answer, "/run/gpurota/container"));
  EXPECT_TRUE(mounts(answer, "/usr/lib/gpurota/libgpurota.so"));
  EXPECT_TRUE(mounts(answer, "/etc/ld.so.preload"));
}

TEST(ContainerAnswer, GivesTheFilesOfItsGpusAndCountsThemFromZero) {
  const auto one = answer_of(Resource::kMemory, {GpuUuid{"GPU-1"}}, GpuGiver::kFiles);
  EXPECT_EQ(one.device_files, (Words{"/dev/nvidia1", "/dev/nvidiactl"}));
  EXPECT_EQ(one.variables.at("CUDA_VISIBLE_DEVICES"), "0");
  EXPECT_TRUE(mounts(one, "/usr/lib64/libcuda.so.1"));
  const auto two =
      answer_of(Resource::kGpu, {GpuUuid{"GPU-1"}, GpuUuid{"GPU-0"}}, GpuGiver::kFiles);
  EXPECT_EQ(two.device_files.size(), 3u);
  EXPECT_EQ(two.variables.at("CUDA_VISIBLE_DEVICES"), "0,1");
  EXPECT_EQ(two.variables.at("GPUROTA_WHOLE"), "1");
}

TEST(ContainerAnswer, LeavesTheGpusToNvidiasRuntime) {
  const auto answer = answer_of(Resource::kMemory, {GpuUuid{"GPU-1"}}, GpuGiver::kRuntime);
  EXPECT_TRUE(answer.device_files.empty());
  EXPECT_EQ(answer.variables.at("NVIDIA_VISIBLE_DEVICES"), "GPU-1");
  EXPECT_EQ(answer.variables.at("CUDA_VISIBLE_DEVICES"), "0");
}

TEST(ContainerAnswer, NamesGpusAsNvidiasDescriptionDoes) {
  const auto answer = answer_of(Resource::kMemory, {GpuUuid{"GPU-1"}}, GpuGiver::kCdi);
  EXPECT_EQ(answer.cdi_devices, Words{"nvidia.com/gpu=1"});
  EXPECT_TRUE(answer.device_files.empty());
}

TEST(ContainerAnswer, SaysWhichGpuHasNoFiles) {
  ContainerNode node = node_with_driver();
  node.hosts[GpuUuid{"GPU-0"}].driver.missing = {"GPU-0"};
  const auto answer =
      container_answer(Resource::kGpu, {GpuUuid{"GPU-0"}}, "secret", GpuGiver::kFiles, node);
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find("--gpus-by"), std::string::npos);
}

TEST(ContainerAnswer, IsOfGpusOfThisNodeOnly) {
  EXPECT_FALSE(container_answer(Resource::kGpu, {GpuUuid{"GPU-9"}}, "secret", GpuGiver::kFiles,
                                node_with_driver()));
}

}  // namespace
}  // namespace gpurota::kube
