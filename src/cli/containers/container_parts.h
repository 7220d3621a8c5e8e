// Options and variables by which an engine gives a container its parts (containers/parts.h), and by
// which way the container gets the GPUs.
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

// For --security-opt, and what compose calls security_opt.
inline constexpr const char* kNoLabel = "label=disable";

// The facts of this machine that decide.
struct ContainerHost : containers::Host {
  bool docker_toolkit = false;  // docker knows --gpus
  bool selinux = false;         // SELinux forbids what its policy does not name
};
ContainerHost read_container_host(const proto::GetEnvironment::Reply& lease);
// `root` stands before every path ("" but in tests).
bool is_selinux_enforcing(const std::string& root);

// kUnavailable: a GPU of the lease that cannot be given to a container here.
Result<ContainerParts> container_parts(const proto::GetEnvironment::Reply& lease,
                                       const EngineCall& call, const ContainerHost& host);

// For docker, podman and nerdctl, behind `run`.
std::vector<std::string> engine_options(const ContainerParts& parts);
// Of these, those that are not for variables.
std::vector<std::string> file_options(const ContainerParts& parts);
// The same as ctr of containerd calls them.
std::vector<std::string> ctr_options(const ContainerParts& parts);
// Apptainer has variables for all of it; `inherited` are ours, some of which are added to.
std::vector<proto::Variable> apptainer_variables(const ContainerParts& parts,
                                                 const char* const* inherited);

}  // namespace gpurota::cli
