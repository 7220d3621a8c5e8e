#include "cli/containers/container_parts.h"

#include "abi/env.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include <unistd.h>

namespace gpurota::cli {
namespace {

constexpr std::string_view kVisible = "CUDA_VISIBLE_DEVICES";
std::string find_variable(const proto::GetEnvironment::Reply& lease, std::string_view name) {
  const auto at = std::find_if(lease.environment.begin(), lease.environment.end(),
                               [&](const proto::Variable& v) { return v.name == name; });
  return at == lease.environment.end() ? std::string() : at->value;
}

// The tenant socket's: a socket that is mounted itself is dead after the daemon's next start.
std::string socket_folder(const proto::GetEnvironment::Reply& lease) {
  const std::string socket = find_variable(lease, GPUROTA_ENV_SOCKET);
  return socket.substr(0, socket.rfind('/'));
}

std::vector<GpuUuid> gpus_of(const proto::GetEnvironment::Reply& lease) {
  std::vector<GpuUuid> gpus;
  for (const proto::LeaseGpu& gpu : lease.lease.gpus) gpus.push_back(gpu.uuid);
  return gpus;
}

bool is_instance(const proto::LeaseGpu& gpu) { return gpu.uuid.value.starts_with("MIG-"); }

// A container that has the lease's GPUs only counts them from 0.
std::string counted(const proto::Lease& lease) {
  std::vector<std::string> names;
  for (const proto::LeaseGpu& gpu : lease.gpus) {
    names.push_back(is_instance(gpu) ? gpu.uuid.value : std::to_string(names.size()));
  }
  return fmt::format("{}", fmt::join(names, ","));
}

std::string by_uuid(const proto::Lease& lease) {
  std::vector<std::string> names;
  for (const proto::LeaseGpu& gpu : lease.gpus) names.push_back(gpu.uuid.value);
  return fmt::format("{}", fmt::join(names, ","));
}

// What CUDA_VISIBLE_DEVICES is to be; empty: as it is.
Result<std::string> give_gpus(ContainerParts& parts, const proto::Lease& lease,
                              const EngineCall& call, const ContainerHost& host) {
  const auto is_all = [](const std::string& value) {
    return value.find("all") != std::string::npos;
  };
  if (!call.gpus.empty()) {
    const bool all = std::any_of(call.gpus.begin(), call.gpus.end(), is_all);
    return all ? std::string() : by_uuid(lease);
  }
  const DriverFiles& driver = host.driver;
  if (driver.devices.empty() && driver.missing.empty()) return std::string();
  if (call.engine == Engine::kDocker && host.docker_toolkit) {
    for (const proto::LeaseGpu& gpu : lease.gpus) parts.gpu_ids.push_back(gpu.uuid.value);
  } else if (call.engine != Engine::kDocker && driver.described) {
    for (const proto::LeaseGpu& gpu : lease.gpus) parts.devices.push_back(described_name(gpu));
  } else if (driver.missing.empty()) {
    parts.devices = driver.devices;
    parts.mounts = containers::driver_mounts(driver);
  } else {
    return fail(Code::kUnavailable, fmt::format("the container cannot have GPU {}, as its device "
                                                "files are not known: install NVIDIA's container "
                                                "toolkit, or name the GPUs yourself (--gpus all)",
                                                driver.missing.front()));
  }
  return call.all_devices ? std::string() : counted(lease);
}

void give_library(ContainerParts& parts, const proto::GetEnvironment::Reply& lease, bool file) {
  const std::string folder = socket_folder(lease);
  if (!lease.preload || folder.empty()) return;
  parts.mounts.push_back({folder, folder});
  parts.mounts.push_back({*lease.preload, *lease.preload});
  if (file) {
    parts.mounts.push_back({folder + "/" GPUROTA_PRELOAD_NAME, "/etc/ld.so.preload"});
  } else {
    parts.variables.push_back({"LD_PRELOAD", *lease.preload});
  }
}

std::optional<std::string> find_inherited(const char* const* variables, const std::string& name) {
  for (; variables != nullptr && *variables != nullptr; ++variables) {
    const std::string_view entry = *variables;
    if (entry.starts_with(name + "=")) return std::string(entry.substr(name.size() + 1));
  }
  return std::nullopt;
}

}  // namespace

std::string described_name(const proto::LeaseGpu& gpu) {
  return "nvidia.com/gpu=" + gpu.label.value_or(std::to_string(gpu.index));
}

ContainerHost read_container_host(const proto::GetEnvironment::Reply& lease) {
  ContainerHost host;
  host.driver = containers::read_driver_files("", gpus_of(lease));
  host.docker_toolkit = ::access("/usr/bin/nvidia-container-runtime-hook", X_OK) == 0;
  const std::string file = socket_folder(lease) + "/" GPUROTA_PRELOAD_NAME;
  host.preload_file = ::access(file.c_str(), R_OK) == 0;
  return host;
}

Result<ContainerParts> container_parts(const proto::GetEnvironment::Reply& lease,
                                       const EngineCall& call, const ContainerHost& host) {
  ContainerParts parts;
  parts.nvidia = !host.driver.devices.empty();
  EngineCall said = call;
  // Apptainer gives all GPUs at once (--nv).
  if (call.engine == Engine::kApptainer) said.gpus = {"all"};
  GPUROTA_ASSIGN_OR_RETURN(const std::string visible, give_gpus(parts, lease.lease, said, host));
  for (const proto::Variable& variable : lease.environment) {
    if (variable.name == GPUROTA_ENV_TOKEN) {
      parts.token = variable.value;
    } else if (variable.name == kVisible && !visible.empty()) {
      parts.variables.push_back({variable.name, visible});
    } else {
      parts.variables.push_back(variable);
    }
  }
  give_library(parts, lease, host.preload_file);
  return parts;
}

std::vector<std::string> file_options(const ContainerParts& parts) {
  std::vector<std::string> options;
  for (const Mount& mount : parts.mounts) {
    options.insert(options.end(), {"--volume", fmt::format("{}:{}:ro", mount.from, mount.to)});
  }
  for (const std::string& device : parts.devices) {
    options.insert(options.end(), {"--device", device});
  }
  if (!parts.gpu_ids.empty()) {
    // Quotes, as docker reads a list of fields separated by commas.
    const std::string ids = fmt::format("\"device={}\"", fmt::join(parts.gpu_ids, ","));
    options.insert(options.end(), {"--gpus", ids});
  }
  return options;
}

std::vector<std::string> engine_options(const ContainerParts& parts) {
  std::vector<std::string> options;
  for (const proto::Variable& v : parts.variables) {
    options.insert(options.end(), {"--env", fmt::format("{}={}", v.name, v.value)});
  }
  if (!parts.token.empty()) options.insert(options.end(), {"--env", GPUROTA_ENV_TOKEN});
  for (std::string& option : file_options(parts)) options.push_back(std::move(option));
  return options;
}

std::vector<proto::Variable> apptainer_variables(const ContainerParts& parts,
                                                 const char* const* inherited) {
  std::vector<proto::Variable> variables;
  // Apptainer reads SingularityCE's variables only where its own are not set.
  const bool own = find_inherited(inherited, "APPTAINER_BIND").has_value();
  for (const std::string& product : {std::string("APPTAINER"), std::string("SINGULARITY")}) {
    const auto give = [&](const std::string& name, const std::string& value) {
      variables.push_back({fmt::format("{}ENV_{}", product, name), value});
    };
    for (const proto::Variable& v : parts.variables) give(v.name, v.value);
    if (!parts.token.empty()) give(GPUROTA_ENV_TOKEN, parts.token);
    const std::string bind = product + "_BIND";
    std::vector<std::string> binds;
    const auto before = find_inherited(inherited, own ? bind : "SINGULARITY_BIND");
    if (before && !before->empty()) binds.push_back(*before);
    for (const Mount& mount : parts.mounts) {
      binds.push_back(fmt::format("{}:{}:ro", mount.from, mount.to));
    }
    if (!binds.empty()) variables.push_back({bind, fmt::format("{}", fmt::join(binds, ","))});
    if (parts.nvidia) variables.push_back({product + "_NV", "1"});
  }
  return variables;
}

}  // namespace gpurota::cli
