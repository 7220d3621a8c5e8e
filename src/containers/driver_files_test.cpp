#include "containers/driver_files.h"

#include "testing/temp_dir.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

namespace gpurota::containers {
namespace {

using Words = std::vector<std::string>;

class Driver : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text = "") {
    const std::string file = dir_.path() + path;
    std::filesystem::create_directories(std::filesystem::path(file).parent_path());
    testing::write_file(file, text);
  }
  testing::TempDir dir_;
};

TEST_F(Driver, TheFilesOfAGpuAreFoundByItsUuid) {
  for (const char* device : {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidia1"}) {
    write(device);
  }
  write("/proc/driver/nvidia/gpus/0000:01:00.0/information",
        "Model: \t\t NVIDIA H100\nGPU UUID: \t GPU-a\nDevice Minor: \t 1\n");
  write("/proc/driver/nvidia/gpus/0000:02:00.0/information",
        "GPU UUID: \t GPU-b\nDevice Minor: \t 0\n");
  write("/usr/lib64/libcuda.so.1");
  write("/usr/lib64/libnvidia-gpucomp.so.580.1");
  write("/usr/lib64/libEGL_nvidia.so.0");
  write("/etc/cdi/nvidia.yaml");
  const DriverFiles files = read_driver_files(dir_.path(), {GpuUuid{"GPU-a"}, GpuUuid{"GPU-x"}});
  EXPECT_EQ(files.devices, (Words{"/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm"}));
  EXPECT_EQ(files.missing, Words{"GPU-x"});
  EXPECT_EQ(files.programs,
            (Words{"/usr/lib64/libcuda.so.1", "/usr/lib64/libnvidia-gpucomp.so.580.1"}));
  EXPECT_TRUE(files.described);
}

TEST_F(Driver, WithoutADriverThereIsNothing) {
  const DriverFiles files = read_driver_files(dir_.path(), {GpuUuid{"GPU-a"}});
  EXPECT_TRUE(files.devices.empty());
  EXPECT_TRUE(files.missing.empty());
}

TEST_F(Driver, ALibraryIsFoundBelowARootAlsoInTheGpuOperatorsContainer) {
  EXPECT_EQ(find_driver_library(dir_.path(), "libnvidia-ml.so.1"), "");
  const std::string of_operator = "/run/nvidia/driver/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1";
  write(of_operator);
  EXPECT_EQ(find_driver_library(dir_.path(), "libnvidia-ml.so.1"), dir_.path() + of_operator);
  write("/usr/lib64/libnvidia-ml.so.1");
  std::filesystem::create_directories(dir_.path() + "/usr/lib/x86_64-linux-gnu");
  EXPECT_EQ(find_driver_library(dir_.path(), "libnvidia-ml.so.1"),
            dir_.path() + "/usr/lib64/libnvidia-ml.so.1");
  // As in Debian's packages: absolute links, relative to the machine's root.
  std::filesystem::create_directories(dir_.path() + "/etc/alternatives");
  std::filesystem::create_symlink("/etc/alternatives/ml",
                                  dir_.path() + "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1");
  std::filesystem::create_symlink("/usr/lib64/libnvidia-ml.so.1",
                                  dir_.path() + "/etc/alternatives/ml");
  EXPECT_EQ(find_driver_library(dir_.path(), "libnvidia-ml.so.1"),
            dir_.path() + "/usr/lib64/libnvidia-ml.so.1");
}

TEST(DriverMounts, LibraryIsMountedOnTheLoadersPathAndProgramAtItsOwn) {
  DriverFiles files;
  files.programs = {"/usr/lib/libcuda.so.1", "/usr/bin/nvidia-smi"};
  const std::vector<Mount> mounts = driver_mounts(files);
  ASSERT_EQ(mounts.size(), 3U);
  EXPECT_EQ(mounts[1], (Mount{"/usr/lib/libcuda.so.1", "/usr/lib64/libcuda.so.1"}));
  EXPECT_EQ(mounts[2], (Mount{"/usr/bin/nvidia-smi", "/usr/bin/nvidia-smi"}));
}

}  // namespace
}  // namespace gpurota::containers
