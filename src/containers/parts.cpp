#include "containers/parts.h"

#include "abi/env.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include <unistd.h>

namespace gpurota::containers {
namespace {

constexpr std::string_view kVisible = "CUDA_VISIBLE_DEVICES";

std::string find_variable(const proto::GetEnvironment::Reply& lease, std::string_view name) {
  const auto at = std::find_if(lease.environment.begin(), lease.environment.end(),
                               [&](const proto::Variable& v) { return v.name == name; });
  return at == lease.environment.end() ? std::string() : at->value;
}

// The folder of the tenant socket. The folder is mounted, because a socket that is mounted itself
// is dead after the daemon's next start.
std::string socket_folder(const proto::GetEnvironment::Reply& lease) {
  const std::string socket = find_variable(lease, GPUROTA_ENV_SOCKET);
  return socket.substr(0, socket.rfind('/'));
}

std::vector<GpuUuid> gpus_of(const proto::GetEnvironment::Reply& lease) {
  std::vector<GpuUuid> gpus;
  for (const proto::LeaseGpu& gpu : lease.lease.gpus) gpus.push_back(gpu.uuid);
  return gpus;
}

std::string by_uuid(const proto::Lease& lease) {
  std::vector<std::string> names;
  for (const proto::LeaseGpu& gpu : lease.gpus) names.push_back(gpu.uuid.value);
  return fmt::format("{}", fmt::join(names, ","));
}

void give_gpus(Parts& parts, const proto::Lease& lease, Giver giver, const DriverFiles& driver) {
  switch (giver) {
    case Giver::kNobody:
      return;
    case Giver::kFiles:
      parts.devices = driver.devices;
      parts.mounts = driver_mounts(driver);
      return;
    case Giver::kDescription:
      for (const proto::LeaseGpu& gpu : lease.gpus) parts.devices.push_back(described_name(gpu));
      return;
    case Giver::kToolkit:
      for (const proto::LeaseGpu& gpu : lease.gpus) parts.gpu_ids.push_back(gpu.uuid.value);
      return;
  }
}

void give_library(Parts& parts, const proto::GetEnvironment::Reply& lease, bool file) {
  const std::string folder = socket_folder(lease);
  if (!lease.preload || folder.empty()) return;
  for (Mount& mount : library_mounts(folder, *lease.preload, file)) {
    parts.mounts.push_back(std::move(mount));
  }
  if (!file) parts.variables.push_back({"LD_PRELOAD", *lease.preload});
}

}  // namespace

bool is_instance(const GpuUuid& gpu) { return gpu.value.starts_with("MIG-"); }

std::string count_gpus(const std::vector<GpuUuid>& gpus) {
  std::vector<std::string> names;
  for (const GpuUuid& gpu : gpus) {
    names.push_back(is_instance(gpu) ? gpu.value : std::to_string(names.size()));
  }
  return fmt::format("{}", fmt::join(names, ","));
}

std::vector<Mount> library_mounts(const std::string& folder, const std::string& library,
                                  bool preload_file) {
  std::vector<Mount> mounts = {{folder, folder}, {library, library}};
  if (preload_file) mounts.push_back({folder + "/" GPUROTA_PRELOAD_NAME, "/etc/ld.so.preload"});
  return mounts;
}

std::string described_name(const proto::LeaseGpu& gpu) {
  return "nvidia.com/gpu=" + gpu.label.value_or(std::to_string(gpu.index));
}

Host read_host(const std::vector<GpuUuid>& gpus, const std::string& socket_folder,
               const std::string& root) {
  Host host;
  host.driver = read_driver_files(root, gpus);
  const std::string file = root + socket_folder + "/" GPUROTA_PRELOAD_NAME;
  host.preload_file = ::access(file.c_str(), R_OK) == 0;
  return host;
}

Host read_host(const proto::GetEnvironment::Reply& lease) {
  return read_host(gpus_of(lease), socket_folder(lease), {});
}

Parts make_parts(const proto::GetEnvironment::Reply& lease, Giver giver, Seen seen,
                 const Host& host) {
  Parts parts;
  parts.nvidia = !host.driver.devices.empty();
  give_gpus(parts, lease.lease, giver, host.driver);
  for (const proto::Variable& variable : lease.environment) {
    if (variable.name == GPUROTA_ENV_TOKEN) {
      parts.token = variable.value;
    } else if (variable.name == kVisible && seen != Seen::kAsOutside) {
      parts.variables.push_back({variable.name, seen == Seen::kByUuid
                                                    ? by_uuid(lease.lease)
                                                    : count_gpus(gpus_of(lease))});
    } else {
      parts.variables.push_back(variable);
    }
  }
  give_library(parts, lease, host.preload_file);
  return parts;
}

}  // namespace gpurota::containers
