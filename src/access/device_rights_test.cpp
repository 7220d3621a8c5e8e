#include "access/device_rights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::access {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr std::string_view kMinors =
    "config 1\nmonitor 2\ngpu0/gi0/access 3\ngpu0/gi0/ci0/access 4\ngpu1/gi7/access 60\n"
    "gpu1/gi7/ci1/access 62\nwhat is that\n";

GpuInfo gpu(const char* uuid, std::optional<int> minor) {
  GpuInfo info;
  info.uuid.value = uuid;
  info.device_minor = minor;
  return info;
}

std::vector<GpuInfo> machine() {
  std::vector<GpuInfo> gpus = {gpu("GPU-a", 0), gpu("GPU-b", 1), gpu("MIG-b", 1), gpu("GPU-c", {})};
  gpus[2].parent = gpus[1].uuid;
  gpus[2].gpu_instance = 7;
  gpus[2].compute_instance = 1;
  return gpus;
}

TEST(DeviceRights, MigMinorsAreThoseOfInstances) {
  EXPECT_THAT(parse_mig_minors(kMinors),
              ElementsAre(Pair("gpu0/gi0/access", 3), Pair("gpu0/gi0/ci0/access", 4),
                          Pair("gpu1/gi7/access", 60), Pair("gpu1/gi7/ci1/access", 62)));
  EXPECT_THAT(parse_mig_minors(""), IsEmpty());
}

TEST(DeviceRights, FilesThatAllClientsShareAreNotManaged) {
  const MigMinors minors = parse_mig_minors(kMinors);
  EXPECT_EQ(kind_of("nvidia0", minors), FileKind::kGpu);
  EXPECT_EQ(kind_of("nvidia12", minors), FileKind::kGpu);
  EXPECT_EQ(kind_of("nvidia-caps/nvidia-cap60", minors), FileKind::kCapability);
  for (const char* name : {"nvidia", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools",
                           "nvidia-modeset", "nvidia-1", "nvidia0x", "nvidia-caps/nvidia-cap1",
                           "nvidia-caps/nvidia-cap2", "nvidia-caps/nvidia-cap99"}) {
    EXPECT_EQ(kind_of(name, minors), std::nullopt) << name;
  }
}

TEST(DeviceRights, ALeaseOpensTheFilesOfItsGpusOnly) {
  EXPECT_THAT(
      holders(machine(), {{1001, {"GPU-a"}}, {1002, {"GPU-b"}}, {1003, {"GPU-a"}}}, {}),
      ElementsAre(Pair("nvidia0", ElementsAre(1001, 1003)), Pair("nvidia1", ElementsAre(1002))));
}

TEST(DeviceRights, AMigInstanceNeedsTheFileOfItsGpuAndItsCapabilities) {
  EXPECT_THAT(holders(machine(), {{1001, {"MIG-b"}}}, parse_mig_minors(kMinors)),
              ElementsAre(Pair("nvidia-caps/nvidia-cap60", ElementsAre(1001)),
                          Pair("nvidia-caps/nvidia-cap62", ElementsAre(1001)),
                          Pair("nvidia1", ElementsAre(1001))));
}

TEST(DeviceRights, UnknownGpuOpensNoFile) {
  EXPECT_THAT(holders(machine(), {{1001, {"GPU-c"}}, {1001, {"GPU-z"}}}, {}), IsEmpty());
}

TEST(DeviceRights, AccessListNamesAllUsersAndTheFilesGroupHasNoRights) {
  EXPECT_EQ(acl_text(FileKind::kGpu, true, {}), "user::rw-,group::---,mask::rw-,other::---");
  EXPECT_EQ(acl_text(FileKind::kGpu, true, {{1002, 33}, {44, 7}}),
            "user::rw-,user:33:rw-,user:1002:rw-,group::---,group:7:rw-,group:44:rw-,mask::rw-,"
            "other::---");
  EXPECT_EQ(acl_text(FileKind::kCapability, false, {{5}, {}}),
            "user::---,user:5:r--,group::---,mask::r--,other::---");
}

TEST(DeviceRights, ModeOfTheDriversHelperIsReadFromItsParameters) {
  EXPECT_EQ(mode_of_helper("Mobile: 4294967295\nModifyDeviceFiles: 1\nDeviceFileUID: 0\n"
                           "DeviceFileGID: 0\nDeviceFileMode: 438\n"),
            mode_t{0666});
  EXPECT_EQ(mode_of_helper("ModifyDeviceFiles: 0\nDeviceFileMode: 438\n"), std::nullopt);
  EXPECT_EQ(mode_of_helper("DeviceFileMode: 432\n"), kHarmlessMode);
  EXPECT_EQ(mode_of_helper(""), std::nullopt);
  EXPECT_EQ(mode_of_helper("RegistryDwords: \"\"\nDeviceFileMode: many\n"), std::nullopt);
}

const std::map<std::string, DeviceNumber> kNumbers = {{"nvidia0", {195, 0}},
                                                      {"nvidia1", {195, 1}},
                                                      {"nvidiactl", {195, 255}},
                                                      {"nvidia-caps/nvidia-cap3", {234, 3}},
                                                      {"nvidia-caps/nvidia-cap60", {234, 60}},
                                                      {"nvidia-caps/nvidia-cap1", {234, 1}}};

TEST(DeviceRights, ALeaseIsFencedFromAllGpusAndInstancesButItsOwn) {
  const MigMinors minors = parse_mig_minors(kMinors);
  EXPECT_THAT(fences(kNumbers, files_of(machine(), {{"MIG-b"}}, minors), minors),
              ElementsAre(DeviceFence{195, 0, 247, {1}}, DeviceFence{234, 3, 62, {60}}));
  EXPECT_THAT(fences(kNumbers, files_of(machine(), {{"GPU-a"}, {"GPU-b"}}, minors), minors),
              ElementsAre(DeviceFence{195, 0, 247, {0, 1}}, DeviceFence{234, 3, 62, {}}));
}

TEST(DeviceRights, WithoutInstancesTheirCapabilitiesAreNotFenced) {
  EXPECT_THAT(fences(kNumbers, {"nvidia0"}, {}), ElementsAre(DeviceFence{195, 0, 247, {0}}));
}

TEST(DeviceRights, WithoutDevicesThereIsNoFence) {
  EXPECT_THAT(fences({}, {"nvidia0"}, parse_mig_minors(kMinors)), IsEmpty());
}

}  // namespace
}  // namespace gpurota::access
