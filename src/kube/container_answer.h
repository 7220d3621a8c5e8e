// The devices, mounts and variables that put a container's programs into the lease of its devices.
// Shared by all programs that start containers of pods. Pure; the caller has read the facts of this
// machine (daemon_view.h).
#pragma once

#include "containers/parts.h"
#include "kube/device_ids.h"
#include "kube/offer.h"

#include <map>
#include <string>
#include <vector>

namespace gpurota::kube {

// The way in which containers get their GPUs.
enum class GpuGiver { kFiles, kRuntime, kCdi };
// "files", "runtime", "cdi".
Result<GpuGiver> parse_gpu_giver(std::string_view word);

// The node's files and folders for containers.
struct ContainerNode {
  std::string socket_folder;  // has the socket for programs in containers
  std::string library;        // libgpurota.so
  std::vector<NodeGpu> gpus;
  std::map<GpuUuid, containers::Host> hosts;  // for a container with this GPU alone
};

struct ContainerAnswer {
  std::map<std::string, std::string> variables;
  std::vector<containers::Mount> mounts;  // read-only
  std::vector<std::string> device_files;
  std::vector<std::string> cdi_devices;
};

// kUnavailable: the node does not have one of the GPUs, or its device files are unknown.
Result<ContainerAnswer> container_answer(Resource resource, const std::vector<GpuUuid>& gpus,
                                         const std::string& token, GpuGiver giver,
                                         const ContainerNode& node);

}  // namespace gpurota::kube
