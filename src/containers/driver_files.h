// The files by which a program in a container comes to the driver: device files of chosen GPUs, and
// the driver's libraries.
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
  bool operator==(const DriverFiles&) const = default;
};

// `root` stands before every path ("" but in tests). Reads a few small files and folders: waits for
// the disk.
DriverFiles read_driver_files(const std::string& root, const std::vector<GpuUuid>& gpus);

// Where a library of the driver is below `root`: the path of the file itself, for us. Empty:
// nowhere. As the GPU operator's driver container has it, too.
std::string find_driver_library(const std::string& root, const std::string& name);

// A file of the machine in the container, read-only.
struct Mount {
  std::string from;
  std::string to;
  bool operator==(const Mount&) const = default;
};
// Those of `programs`: each library where the loaders of Debian's relatives and of Red Hat's look
// without being told.
std::vector<Mount> driver_mounts(const DriverFiles& files);

}  // namespace gpurota::containers
