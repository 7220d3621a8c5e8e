#include "cli/containers/container_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace gpurota::cli {
namespace {

using Words = std::vector<std::string>;

proto::GetEnvironment::Reply lease_of(const Words& uuids) {
  proto::GetEnvironment::Reply reply;
  int index = 2;
  for (const std::string& uuid : uuids) {
    proto::LeaseGpu gpu;
    gpu.uuid = GpuUuid{uuid};
    gpu.index = index++;
    reply.lease.gpus.push_back(gpu);
  }
  reply.environment = {{"CUDA_VISIBLE_DEVICES", "2,3"},
                       {"GPUROTA_LEASE", "L7"},
                       {"GPUROTA_SOCKET", "/run/gpurota/tenant.sock"},
                       {"GPUROTA_TOKEN", "secret"}};
  reply.preload = "/usr/lib/gpurota/libgpurota.so";
  return reply;
}

Words options_of(const proto::GetEnvironment::Reply& lease, const EngineCall& call,
                 const ContainerHost& host) {
  const auto parts = container_parts(lease, call, host);
  EXPECT_TRUE(parts) << parts.error().message;
  return engine_options(parts.value_or(ContainerParts{}));
}

bool has(const Words& options, const std::string& option, const std::string& value) {
  for (std::size_t i = 0; i + 1 < options.size(); ++i) {
    if (options[i] == option && options[i + 1] == value) return true;
  }
  return false;
}

EngineCall call_by(Engine engine, Words gpus = {}) {
  EngineCall call;
  call.engine = engine;
  call.gpus = std::move(gpus);
  return call;
}

TEST(ContainerParts, TheTokenIsOnNoCommandLine) {
  ContainerHost host;
  host.preload_file = true;
  const Words options = options_of(lease_of({"GPU-a"}), call_by(Engine::kPodman), host);
  EXPECT_TRUE(has(options, "--env", "GPUROTA_TOKEN"));
  EXPECT_TRUE(std::none_of(options.begin(), options.end(), [](const std::string& word) {
    return word.find("secret") != std::string::npos;
  }));
}

TEST(ContainerParts, TheFolderOfTheSocketAndTheLibraryAreMounted) {
  ContainerHost host;
  host.preload_file = true;
  Words options = options_of(lease_of({"GPU-a"}), call_by(Engine::kPodman), host);
  EXPECT_TRUE(has(options, "--volume", "/run/gpurota:/run/gpurota:ro"));
  EXPECT_TRUE(
      has(options, "--volume", "/usr/lib/gpurota/libgpurota.so:/usr/lib/gpurota/libgpurota.so:ro"));
  EXPECT_TRUE(has(options, "--volume", "/run/gpurota/ld.so.preload:/etc/ld.so.preload:ro"));
  EXPECT_FALSE(has(options, "--env", "LD_PRELOAD=/usr/lib/gpurota/libgpurota.so"));
  host.preload_file = false;  // an older daemon
  options = options_of(lease_of({"GPU-a"}), call_by(Engine::kPodman), host);
  EXPECT_TRUE(has(options, "--env", "LD_PRELOAD=/usr/lib/gpurota/libgpurota.so"));
}

TEST(ContainerParts, ASimulatedMachineHasNoDevices) {
  const Words options = options_of(lease_of({"GPU-a"}), call_by(Engine::kPodman), {});
  EXPECT_TRUE(has(options, "--env", "CUDA_VISIBLE_DEVICES=2,3"));
  EXPECT_EQ(std::count(options.begin(), options.end(), "--device"), 0);
}

TEST(ContainerParts, WithoutToolkitGetsDeviceFilesAndCountsGpusFromZero) {
  ContainerHost host;
  host.driver.devices = {"/dev/nvidia5", "/dev/nvidia6", "/dev/nvidiactl"};
  host.driver.programs = {"/usr/lib64/libcuda.so.1", "/usr/bin/nvidia-smi"};
  const Words options = options_of(lease_of({"GPU-a", "GPU-b"}), call_by(Engine::kDocker), host);
  EXPECT_TRUE(has(options, "--device", "/dev/nvidia5"));
  EXPECT_TRUE(has(options, "--device", "/dev/nvidiactl"));
  EXPECT_TRUE(has(options, "--env", "CUDA_VISIBLE_DEVICES=0,1"));
  EXPECT_TRUE(has(options, "--volume", "/usr/lib64/libcuda.so.1:/usr/lib64/libcuda.so.1:ro"));
  EXPECT_TRUE(has(options, "--volume", "/usr/bin/nvidia-smi:/usr/bin/nvidia-smi:ro"));
}

TEST(ContainerParts, WithAllDevicesGpusKeepTheirNumbers) {
  ContainerHost host;
  host.driver.devices = {"/dev/nvidia5", "/dev/nvidiactl"};
  EngineCall call = call_by(Engine::kDocker);
  call.all_devices = true;
  EXPECT_TRUE(
      has(options_of(lease_of({"GPU-a"}), call, host), "--env", "CUDA_VISIBLE_DEVICES=2,3"));
}

TEST(ContainerParts, ToolkitIsPreferredToDeviceFiles) {
  ContainerHost host;
  host.driver.devices = {"/dev/nvidia5", "/dev/nvidiactl"};
  host.driver.described = true;
  host.docker_toolkit = true;
  Words options = options_of(lease_of({"GPU-a"}), call_by(Engine::kPodman), host);
  EXPECT_TRUE(has(options, "--device", "nvidia.com/gpu=2"));
  EXPECT_FALSE(has(options, "--device", "/dev/nvidia5"));
  options = options_of(lease_of({"GPU-a"}), call_by(Engine::kDocker), host);
  EXPECT_TRUE(has(options, "--gpus", "\"device=GPU-a\""));
}

TEST(ContainerParts, CtrGetsDeviceFilesEvenWithACdiDescription) {
  ContainerHost host;
  host.driver.devices = {"/dev/nvidia5", "/dev/nvidiactl"};
  host.driver.described = true;
  const auto parts = container_parts(lease_of({"GPU-a"}), call_by(Engine::kCtr), host);
  ASSERT_TRUE(parts);
  EXPECT_TRUE(has(ctr_options(*parts), "--device", "/dev/nvidia5"));
  EXPECT_TRUE(has(ctr_options(*parts), "--mount",
                  "type=bind,src=/run/gpurota,dst=/run/gpurota,options=rbind:ro"));
}

TEST(ContainerParts, SelinuxLabelIsDisabledUnlessTheCommandNamesOne) {
  ContainerHost host;
  const auto has_option = [&](const EngineCall& call) {
    return has(options_of(lease_of({"GPU-a"}), call, host), "--security-opt", "label=disable");
  };
  EXPECT_FALSE(has_option(call_by(Engine::kPodman)));
  host.selinux = true;
  EXPECT_TRUE(has_option(call_by(Engine::kPodman)));
  EXPECT_TRUE(has_option(call_by(Engine::kDocker)));
  EXPECT_FALSE(has_option(call_by(Engine::kNerdctl))) << "it does not know the option";
  EngineCall call = call_by(Engine::kPodman);
  call.own_label = true;
  EXPECT_FALSE(has_option(call));
}

TEST(ContainerHost, SelinuxEnforcesWhereItsFileSaysSo) {
  const std::string root = ::testing::TempDir() + "gpurota-selinux";
  EXPECT_FALSE(is_selinux_enforcing(root));
  std::filesystem::create_directories(root + "/sys/fs/selinux");
  const std::string file = root + "/sys/fs/selinux/enforce";
  std::ofstream(file) << "0";
  EXPECT_FALSE(is_selinux_enforcing(root));
  std::ofstream(file) << "1";
  EXPECT_TRUE(is_selinux_enforcing(root));
  std::filesystem::remove_all(root);
}

TEST(ContainerParts, GpusThatTheUserNamesAreKept) {
  ContainerHost host;
  host.driver.devices = {"/dev/nvidia5", "/dev/nvidiactl"};
  Words options = options_of(lease_of({"GPU-a"}), call_by(Engine::kDocker, {"all"}), host);
  EXPECT_TRUE(has(options, "--env", "CUDA_VISIBLE_DEVICES=2,3")) << "as all are there";
  options = options_of(lease_of({"GPU-a"}), call_by(Engine::kDocker, {"device=1"}), host);
  EXPECT_TRUE(has(options, "--env", "CUDA_VISIBLE_DEVICES=GPU-a"));
  EXPECT_EQ(std::count(options.begin(), options.end(), "--device"), 0);
}

TEST(ContainerParts, AGpuWithoutAFileIsAnErrorThatSaysWhatToDo) {
  ContainerHost host;
  host.driver.devices = {"/dev/nvidiactl"};
  host.driver.missing = {"MIG-a"};
  const auto parts = container_parts(lease_of({"MIG-a"}), call_by(Engine::kDocker), host);
  ASSERT_FALSE(parts);
  EXPECT_NE(parts.error().message.find("container toolkit"), std::string::npos);
}

TEST(ContainerParts, ApptainerVariablesExtendTheUsersOwn) {
  ContainerHost host;
  host.preload_file = true;
  host.driver.devices = {"/dev/nvidia5", "/dev/nvidiactl"};
  const auto parts = container_parts(lease_of({"GPU-a"}), call_by(Engine::kApptainer), host);
  ASSERT_TRUE(parts);
  const char* const inherited[] = {"HOME=/", "APPTAINER_BIND=/data", nullptr};
  std::map<std::string, std::string> said;
  for (const auto& v : apptainer_variables(*parts, inherited)) said[v.name] = v.value;
  EXPECT_EQ(said["APPTAINERENV_GPUROTA_TOKEN"], "secret");
  EXPECT_EQ(said["APPTAINERENV_CUDA_VISIBLE_DEVICES"], "2,3");
  EXPECT_EQ(said["APPTAINER_NV"], "1");
  EXPECT_EQ(said["APPTAINER_BIND"].find("/data,/run/gpurota:/run/gpurota:ro"), 0u);
  EXPECT_EQ(said["SINGULARITY_BIND"].find("/run/gpurota:/run/gpurota:ro"), 0u);
}

}  // namespace
}  // namespace gpurota::cli
