#include "cli/containers/container_parts.h"

#include "abi/env.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <string_view>

#include <unistd.h>

namespace gpurota::cli {
namespace {

using containers::Giver;
using containers::Seen;

struct Way {
  Giver giver = Giver::kNobody;
  Seen seen = Seen::kAsOutside;
};

// How the engine gives the container the lease's GPUs.
Result<Way> way_of(const EngineCall& call, const ContainerHost& host) {
  const auto is_all = [](const std::string& value) {
    return value.find("all") != std::string::npos;
  };
  // Apptainer gives all GPUs at once (--nv).
  const bool all =
      call.engine == Engine::kApptainer || std::any_of(call.gpus.begin(), call.gpus.end(), is_all);
  if (all) return Way{};
  if (!call.gpus.empty()) return Way{Giver::kNobody, Seen::kByUuid};
  const containers::DriverFiles& driver = host.driver;
  if (driver.devices.empty() && driver.missing.empty()) return Way{};
  const Seen seen = call.all_devices ? Seen::kAsOutside : Seen::kFromZero;
  const bool toolkit = call.engine == Engine::kDocker && host.docker_toolkit;
  // ctr supports CDI descriptions since version 1.7.
  const bool describes = call.engine == Engine::kPodman || call.engine == Engine::kNerdctl;
  if (toolkit) return Way{Giver::kToolkit, seen};
  if (describes && driver.described) return Way{Giver::kDescription, seen};
  if (driver.missing.empty()) return Way{Giver::kFiles, seen};
  return fail(Code::kUnavailable, fmt::format("the container cannot have GPU {}, as its device "
                                              "files are not known: install NVIDIA's container "
                                              "toolkit, or name the GPUs yourself (--gpus all)",
                                              driver.missing.front()));
}

std::optional<std::string> find_inherited(const char* const* variables, const std::string& name) {
  for (; variables != nullptr && *variables != nullptr; ++variables) {
    const std::string_view entry = *variables;
    if (entry.starts_with(name + "=")) return std::string(entry.substr(name.size() + 1));
  }
  return std::nullopt;
}

}  // namespace

ContainerHost read_container_host(const proto::GetEnvironment::Reply& lease) {
  ContainerHost host{containers::read_host(lease)};
  host.docker_toolkit = ::access("/usr/bin/nvidia-container-runtime-hook", X_OK) == 0;
  host.selinux = is_selinux_enforcing({});
  return host;
}

bool is_selinux_enforcing(const std::string& root) {
  char enforce = '0';
  std::ifstream(root + "/sys/fs/selinux/enforce") >> enforce;
  return enforce == '1';
}

Result<ContainerParts> container_parts(const proto::GetEnvironment::Reply& lease,
                                       const EngineCall& call, const ContainerHost& host) {
  GPUROTA_ASSIGN_OR_RETURN(const Way way, way_of(call, host));
  ContainerParts parts = containers::make_parts(lease, way.giver, way.seen, host);
  const bool labels = call.engine == Engine::kDocker || call.engine == Engine::kPodman;
  parts.unlabelled = labels && host.selinux && !call.own_label;
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
  if (parts.unlabelled) options.insert(options.end(), {"--security-opt", kNoLabel});
  if (!parts.gpu_ids.empty()) {
    // The quotes are for docker, which reads fields separated by commas.
    const std::string ids = fmt::format("\"device={}\"", fmt::join(parts.gpu_ids, ","));
    options.insert(options.end(), {"--gpus", ids});
  }
  return options;
}

std::vector<std::string> ctr_options(const ContainerParts& parts) {
  std::vector<std::string> options;
  for (const Mount& mount : parts.mounts) {
    options.insert(
        options.end(),
        {"--mount", fmt::format("type=bind,src={},dst={},options=rbind:ro", mount.from, mount.to)});
  }
  for (const std::string& device : parts.devices) {
    options.insert(options.end(), {"--device", device});
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
