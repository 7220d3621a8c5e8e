#include "containers/driver_files.h"

#include "containers/file_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <string_view>
#include <system_error>

namespace gpurota::containers {
namespace {

namespace fs = std::filesystem;

constexpr auto kShared =
    std::to_array<const char*>({"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"});
constexpr auto kDescriptions = std::to_array<const char*>({"/etc/cdi", "/var/run/cdi"});
constexpr auto kLibraryFolders =
    std::to_array<const char*>({"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
                                "/usr/lib64", "/usr/local/nvidia/lib64", "/usr/lib"});
// The driver's libraries that NVIDIA's container toolkit gives to a container for computing
// ("compute" and "utility").
constexpr auto kLibraries = std::to_array<std::string_view>(
    {"libcuda.so.1", "libcudadebugger.so.1", "libnvidia-ml.so.1", "libnvidia-cfg.so.1",
     "libnvidia-opencl.so.1", "libnvidia-ptxjitcompiler.so.1", "libnvidia-nvvm.so.4",
     "libnvidia-gpucomp.so.", "libnvidia-nvvm70.so.", "libnvidia-allocator.so.1",
     "libnvidia-tileiras.so."});

// The default folders of the loader of Debian's relatives and of Red Hat's.
#if defined(__aarch64__)
constexpr auto kLoaderFolders =
    std::to_array<const char*>({"/usr/lib/aarch64-linux-gnu", "/usr/lib64"});
#else
constexpr auto kLoaderFolders =
    std::to_array<const char*>({"/usr/lib/x86_64-linux-gnu", "/usr/lib64"});
#endif

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    names.push_back(at->path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool is_there(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// "GPU UUID: \t GPU-…" and "Device Minor: \t 0" of /proc/driver/nvidia/gpus/ADDRESS/information
// (driver 450 and later).
std::map<std::string, std::string> minors(const std::string& root) {
  std::map<std::string, std::string> of;
  const std::string folder = root + "/proc/driver/nvidia/gpus";
  for (const std::string& address : names_in(folder)) {
    std::ifstream file(fmt::format("{}/{}/information", folder, address));
    std::string uuid, minor;
    for (std::string line; std::getline(file, line);) {
      const std::size_t at = line.find_last_of(" \t");
      if (at == std::string::npos) continue;
      if (line.starts_with("GPU UUID:")) uuid = line.substr(at + 1);
      if (line.starts_with("Device Minor:")) minor = line.substr(at + 1);
    }
    if (!uuid.empty() && !minor.empty()) of[uuid] = minor;
  }
  return of;
}

bool is_wanted(std::string_view name) {
  return std::any_of(kLibraries.begin(), kLibraries.end(), [&](std::string_view library) {
    return library.ends_with('.') ? name.starts_with(library) : name == library;
  });
}

std::vector<std::string> read_programs(const std::string& root) {
  std::vector<std::string> found;
  for (const char* folder : kLibraryFolders) {
    if (!is_there(fmt::format("{}{}/libcuda.so.1", root, folder))) continue;
    for (const std::string& name : names_in(root + folder)) {
      if (is_wanted(name)) found.push_back(fmt::format("{}/{}", folder, name));
    }
    break;
  }
  if (is_there(root + "/usr/bin/nvidia-smi")) found.emplace_back("/usr/bin/nvidia-smi");
  return found;
}

bool is_described(const std::string& root) {
  return std::any_of(kDescriptions.begin(), kDescriptions.end(), [&](const char* folder) {
    const auto names = names_in(root + folder);
    return std::any_of(names.begin(), names.end(), [](std::string_view name) {
      return name.starts_with("nvidia") && (name.ends_with(".yaml") || name.ends_with(".json"));
    });
  });
}

}  // namespace

DriverFiles read_driver_files(const std::string& root, const std::vector<GpuUuid>& gpus) {
  DriverFiles files;
  if (!is_there(root + kShared.front())) return files;
  files.described = is_described(root);
  const auto numbers = minors(root);
  for (const GpuUuid& gpu : gpus) {
    const auto minor = numbers.find(gpu.value);
    const std::string device = minor == numbers.end() ? "" : "/dev/nvidia" + minor->second;
    if (device.empty() || !is_there(root + device)) {
      files.missing.push_back(gpu.value);
    } else {
      files.devices.push_back(device);
    }
  }
  for (const char* device : kShared) {
    if (is_there(root + device)) files.devices.emplace_back(device);
  }
  files.programs = read_programs(root);
  return files;
}

std::string find_driver_library(const std::string& root, const std::string& name) {
  for (const char* const top : {"", "/run/nvidia/driver"}) {
    for (const char* const folder : kLibraryFolders) {
      // Debian's own packages have links to /etc/alternatives there.
      std::string place = real_path_below(root + top, fmt::format("{}/{}", folder, name));
      if (!place.empty()) return place;
    }
  }
  return {};
}

std::vector<Mount> driver_mounts(const DriverFiles& files) {
  std::vector<Mount> mounts;
  for (const std::string& program : files.programs) {
    const std::string name = program.substr(program.rfind('/') + 1);
    if (name.find(".so") == std::string::npos) {
      mounts.push_back({program, program});
      continue;
    }
    for (const char* folder : kLoaderFolders) {
      mounts.push_back({program, fmt::format("{}/{}", folder, name)});
    }
  }
  return mounts;
}

}  // namespace gpurota::containers
