// What a container gets so that its programs are in a lease: variables, files, GPUs. docs/operate/containers.md.
#pragma once

#include "base/result.h"
#include "cli/containers/engine_call.h"
#include "containers/driver_files.h"
#include "proto/methods.h"

#include <optional>
#include <string>
#include <vector>

namespace gpurota::cli {

using containers::DriverFiles;
using containers::Mount;

struct ContainerParts {
  // All but the token, which the engine takes from its own environment: what stands on a command line everybody reads.
  std::vector<proto::Variable> variables;
  std::string token;                 // empty: there is none
  std::vector<Mount> mounts;         // read-only
  std::vector<std::string> devices;  // for --device
  std::vector<std::string> gpu_ids;  // for docker's --gpus: UUIDs
  bool nvidia = false;               // an NVIDIA driver is there
};

// What of this machine decides.
struct ContainerHost {
  DriverFiles driver;
  bool docker_toolkit = false;  // docker knows --gpus
  bool preload_file = false;    // the daemon has made it (abi/env.h)
};
ContainerHost read_container_host(const proto::GetEnvironment::Reply& lease);

// As NVIDIA's description (CDI) calls it: "nvidia.com/gpu=0", and "…=0:1" of an instance.
std::string described_name(const proto::LeaseGpu& gpu);

// kUnavailable: a GPU of the lease that cannot be given to a container here.
Result<ContainerParts> container_parts(const proto::GetEnvironment::Reply& lease,
                                       const EngineCall& call, const ContainerHost& host);

// For docker, podman and nerdctl, behind `run`.
std::vector<std::string> engine_options(const ContainerParts& parts);
// Of these, those that are not for variables.
std::vector<std::string> file_options(const ContainerParts& parts);
// Apptainer has variables for all of it; `inherited` are ours, some of which are added to.
std::vector<proto::Variable> apptainer_variables(const ContainerParts& parts,
                                                 const char* const* inherited);

}  // namespace gpurota::cli
