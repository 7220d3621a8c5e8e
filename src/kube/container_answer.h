// The devices, mounts and variables with which a container is started, so that its programs are in
// the lease that its devices stand for. Shared by all programs that start containers of pods. Pure;
// the facts of this machine are read before (daemon_view.h).
#pragma once

#include "containers/parts.h"
#include "kube/device_ids.h"
#include "kube/offer.h"

#include <map>
#include <string>
#include <vector>

namespace gpurota::kube {

// By whom containers get their GPUs.
enum class GpuGiver { kFiles, kRuntime, kCdi };
// "files", "runtime", "cdi".
Result<GpuGiver> parse_gpu_giver(std::string_view word);

// The node's files and folders for its containers.
struct ContainerNode {
  std::string socket_folder;  // with the socket of programs, for containers
  std::string library;        // libgpurota.so
  std::vector<NodeGpu> gpus;
  std::map<GpuUuid, containers::Host> hosts;  // of a container with this GPU alone
};

struct ContainerAnswer {
  std::map<std::string, std::string> variables;
  std::vector<containers::Mount> mounts;  // read-only
  std::vector<std::string> device_files;
  std::vector<std::string> cdi_devices;
};

// kUnavailable: a GPU that this node does not have, or whose device files are not known.
Result<ContainerAnswer> container_answer(Resource resource, const std::vector<GpuUuid>& gpus,
                                         const std::string& token, GpuGiver giver,
                                         const ContainerNode& node);

}  // namespace gpurota::kube
