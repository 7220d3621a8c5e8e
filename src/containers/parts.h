// The parts that a container gets so that its programs are in a lease: variables, files, GPUs
// (docs/operate/containers.md). For the code that writes an engine's command (cli/containers) and
// the code that answers kubelet (kube). Any thread; read_host() reads a few small files.
#pragma once

#include "base/result.h"
#include "containers/driver_files.h"
#include "proto/methods.h"

#include <string>
#include <vector>

namespace gpurota::containers {

struct Parts {
  // All but the token, because everybody can read a command line.
  std::vector<proto::Variable> variables;
  std::string token;          // empty: there is none
  std::vector<Mount> mounts;  // read-only
  std::vector<std::string>
      devices;  // device files, or NVIDIA's names for them ("nvidia.com/gpu=0")
  std::vector<std::string> gpu_ids;  // for NVIDIA's toolkit: UUIDs
  bool nvidia = false;               // an NVIDIA driver is there
  bool unlabelled = false;           // run without an SELinux label, to reach the daemon's socket
};

// The facts about this machine that decide which parts a container gets.
struct Host {
  DriverFiles driver;
  bool preload_file = false;  // the daemon has written it (abi/env.h)
};
Host read_host(const proto::GetEnvironment::Reply& lease);
// The facts for a container with these GPUs, whose socket is in this folder; `root` as for
// read_driver_files().
Host read_host(const std::vector<GpuUuid>& gpus, const std::string& socket_folder,
               const std::string& root);

// The source from which the container gets the lease's GPUs.
enum class Giver {
  kNobody,       // it already has its GPUs, or the lease has none
  kFiles,        // us: device files, and the driver's libraries one by one
  kDescription,  // NVIDIA's description of its devices (CDI)
  kToolkit       // NVIDIA's container toolkit
};
// How the container's programs see the GPUs.
enum class Seen { kAsOutside, kByUuid, kFromZero };

bool is_instance(const GpuUuid& gpu);  // a MIG instance, which has no number for CUDA
// For CUDA_VISIBLE_DEVICES: a container that has only these GPUs numbers them from 0.
std::string count_gpus(const std::vector<GpuUuid>& gpus);
// The mounts by which its programs reach the daemon and load the library. `folder` contains the
// socket; a socket that is mounted itself is dead after the daemon's next start. `preload_file`:
// whether the folder has a file for /etc/ld.so.preload.
std::vector<Mount> library_mounts(const std::string& folder, const std::string& library,
                                  bool preload_file);
// The name in NVIDIA's description (CDI): "nvidia.com/gpu=0", and "…=0:1" for an instance.
std::string described_name(const proto::LeaseGpu& gpu);

// `lease` is the daemon's answer for a container.
Parts make_parts(const proto::GetEnvironment::Reply& lease, Giver giver, Seen seen,
                 const Host& host);

}  // namespace gpurota::containers
