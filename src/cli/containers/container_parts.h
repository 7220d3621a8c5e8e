// The options and variables by which an engine gives a container its parts (containers/parts.h),
// and the choice of how the container gets the GPUs.
#pragma once

#include "base/result.h"
#include "cli/containers/engine_call.h"
#include "containers/parts.h"
#include "proto/methods.h"

#include <string>
#include <vector>

namespace gpurota::cli {

using containers::Mount;
using ContainerParts = containers::Parts;

// For --security-opt, and for security_opt in compose.
inline constexpr const char* kNoLabel = "label=disable";

// The facts about this machine that decide how a container gets its GPUs.
struct ContainerHost : containers::Host {
  bool docker_toolkit = false;  // docker supports --gpus
  bool selinux = false;         // SELinux forbids what its policy does not allow
};
ContainerHost read_container_host(const proto::GetEnvironment::Reply& lease);
// `root` is put before every path ("" except in tests).
bool is_selinux_enforcing(const std::string& root);

// kUnavailable: a GPU of the lease cannot be given to a container here.
Result<ContainerParts> container_parts(const proto::GetEnvironment::Reply& lease,
                                       const EngineCall& call, const ContainerHost& host);

// For docker, podman and nerdctl, after `run`.
std::vector<std::string> engine_options(const ContainerParts& parts);
// Only the options of engine_options() that do not set a variable.
std::vector<std::string> file_options(const ContainerParts& parts);
// Like file_options(), for ctr of containerd.
std::vector<std::string> ctr_options(const ContainerParts& parts);
// Apptainer takes everything from variables. `inherited` is our environment; some of its variables
// are extended.
std::vector<proto::Variable> apptainer_variables(const ContainerParts& parts,
                                                 const char* const* inherited);

}  // namespace gpurota::cli
