// The parts that a container gets so that its programs are in a lease: variables, files, GPUs
// (docs/operate/containers.md). For the code that writes an engine's command (cli/containers) and
// the code that answers a kubelet (kube). Any thread; read_host() reads a few small files.
#pragma once

#include "base/result.h"
#include "containers/driver_files.h"
#include "proto/methods.h"

#include <string>
#include <vector>

namespace gpurota::containers {

struct Parts {
  // All but the token: what stands on a command line everybody reads.
  std::vector<proto::Variable> variables;
  std::string token;          // empty: there is none
  std::vector<Mount> mounts;  // read-only
  std::vector<std::string>
      devices;  // device files, or as NVIDIA's description calls them ("nvidia.com/gpu=0")
  std::vector<std::string> gpu_ids;  // for NVIDIA's toolkit: UUIDs
  bool nvidia = false;               // an NVIDIA driver is there
  bool unlabelled = false;           // SELinux is not to keep it from the daemon's socket
};

// The facts of this machine that decide.
struct Host {
  DriverFiles driver;
  bool preload_file = false;  // the daemon has made it (abi/env.h)
};
Host read_host(const proto::GetEnvironment::Reply& lease);
// Of a container with these GPUs, whose socket is in this folder; `root` as for
// read_driver_files().
Host read_host(const std::vector<GpuUuid>& gpus, const std::string& socket_folder,
               const std::string& root);

// By whom the container gets the lease's GPUs.
enum class Giver {
  kNobody,       // it has them, or there are none to give
  kFiles,        // us: device files, and the driver's libraries one by one
  kDescription,  // NVIDIA's description of its devices (CDI)
  kToolkit       // NVIDIA's container toolkit
};
// As what its programs see them.
enum class Seen { kAsOutside, kByUuid, kFromZero };

bool is_instance(const GpuUuid& gpu);  // of MIG: it has no number that CUDA knows
// For CUDA_VISIBLE_DEVICES: a container that has these GPUs only counts them from 0.
std::string count_gpus(const std::vector<GpuUuid>& gpus);
// By which its programs reach the daemon and load the library. `folder` has the socket: one that is
// mounted itself is dead after the daemon's next start. `preload_file`: the folder has a file for
// /etc/ld.so.preload.
std::vector<Mount> library_mounts(const std::string& folder, const std::string& library,
                                  bool preload_file);
// As NVIDIA's description (CDI) calls it: "nvidia.com/gpu=0", and "…=0:1" of an instance.
std::string described_name(const proto::LeaseGpu& gpu);

// `lease` as the daemon answers for a container.
Parts make_parts(const proto::GetEnvironment::Reply& lease, Giver giver, Seen seen,
                 const Host& host);

}  // namespace gpurota::containers
