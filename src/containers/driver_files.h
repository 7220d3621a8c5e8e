// The files by which a program in a container comes to the driver: device files of chosen GPUs, and the driver's libraries.
#pragma once

#include "base/ids.h"

#include <string>
#include <vector>

namespace gpurota::containers {

struct DriverFiles {
  // Of these GPUs and of all; none where no NVIDIA driver is (a simulated machine, or WSL).
  std::vector<std::string> devices;
  // libcuda.so.1 and what it loads, and nvidia-smi, by their names here.
  std::vector<std::string> programs;
  // NVIDIA's description of its devices for container engines (CDI) is there.
  bool described = false;
  // GPUs of which no device file was found: MIG instances, or a driver without /proc/driver/nvidia.
  std::vector<std::string> missing;
};

// `root` stands before every path ("" but in tests). Reads a few small files and folders.
DriverFiles read_driver_files(const std::string& root, const std::vector<GpuUuid>& gpus);

}  // namespace gpurota::containers
