// The files that a program in a container needs to reach the driver: device files of chosen GPUs,
// and the driver's libraries.
#pragma once

#include "base/ids.h"

#include <string>
#include <vector>

namespace gpurota::containers {

struct DriverFiles {
  // Device files of these GPUs and of all GPUs; none where there is no NVIDIA driver (a simulated
  // machine, or WSL).
  std::vector<std::string> devices;
  // Paths of libcuda.so.1, of what it loads, and of nvidia-smi on this machine.
  std::vector<std::string> programs;
  // Whether NVIDIA's description of its devices for container engines (CDI) exists.
  bool described = false;
  // GPUs without a device file: MIG instances, or a driver without /proc/driver/nvidia.
  std::vector<std::string> missing;
  bool operator==(const DriverFiles&) const = default;
};

// `root` is put before every path ("" except in tests). Reads a few small files and folders, and
// waits for the disk.
DriverFiles read_driver_files(const std::string& root, const std::vector<GpuUuid>& gpus);

// The path by which this process can open a driver library that lies below `root`, with all links
// resolved. Also finds it where the GPU operator's driver container has it. Empty: not found.
std::string find_driver_library(const std::string& root, const std::string& name);

// A file of the machine in the container, read-only.
struct Mount {
  std::string from;
  std::string to;
  bool operator==(const Mount&) const = default;
};
// The mounts for `programs`: each library goes into the default folders of the loaders of Debian's
// relatives and of Red Hat's.
std::vector<Mount> driver_mounts(const DriverFiles& files);

}  // namespace gpurota::containers
