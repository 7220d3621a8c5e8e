// Which devices a node offers to kubelet, and which of them can be had now: a pure function of the
// daemon's view of its GPUs and of what containers have.
//
// Kubelet does not know how the resources depend on each other: a GPU whose memory is partly used
// cannot be had whole. So devices that cannot be had are Unhealthy, and the devices of a container
// stay Healthy as long as their GPU exists.
#pragma once

#include "base/bytes.h"
#include "kube/device_ids.h"
#include "kube/machine.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::kube {

// Empty: there is no driver, or its version is unknown.
struct DriverVersions {
  std::string driver;
  std::string cuda;  // the newest that the driver supports
};

// A GPU as the daemon shows it.
struct NodeGpu {
  GpuUuid uuid;
  std::string label;  // the name for people
  int index = 0;      // PCI order
  PciPlace place{};
  Bytes memory{};                         // its size
  Bytes free{};                           // the most for a new slice
  Bytes free_for_turns{};                 // the most for a new lease that takes turns
  bool idle = false;                      // can be had whole
  bool takes_turns = true;                // false: it uses the machine's memory
  bool works = true;                      // neither lost nor in error
  bool in_service = true;                 // not drained
  std::string model{};                    // the driver's name for it
  std::string pci{};                      // in the driver's form, 00000000:01:00.0
  std::optional<GpuUuid> nvlink_group{};  // the same for GPUs joined by NVLink
  std::optional<GpuUuid> parent{};        // of a MIG instance
  std::string compute{};                  // its compute capability, "9.0"; empty: unknown
  std::int64_t ecc_errors = 0;            // uncorrected, since the driver was loaded
  bool operator==(const NodeGpu&) const = default;
};

// Adds GPUs that the daemon no longer shows: a lost GPU is published as not working, instead of
// disappearing.
void keep_lost(std::vector<NodeGpu>& now, const std::vector<NodeGpu>& before);

struct Rules {
  Bytes unit = gib(1);  // of the resource memory
  int turns = 10;       // the most places on each GPU
  // The memory of a lease that takes turns; empty: all memory that slices leave free.
  std::optional<Bytes> turn_memory;
  bool operator==(const Rules&) const = default;
};

// Devices that a container has or was promised.
struct Taken {
  Resource resource;
  Device device;
  bool leased = false;  // the daemon already counts it
};

struct Offered {
  std::string id;
  bool healthy = false;
  std::optional<int> numa{};
  bool operator==(const Offered&) const = default;
};

// `host_memory`: the host memory that the daemon may use for evicted memory.
std::vector<Offered> offer(Resource resource, const std::vector<NodeGpu>& gpus,
                           const std::vector<Taken>& taken, const Rules& rules, Bytes host_memory);

// The number of places on each GPU for leases that take turns: all but one lease may have to be in
// host memory at the same time.
int turns_of(const NodeGpu& gpu, std::size_t gpus, const Rules& rules, Bytes host_memory);

}  // namespace gpurota::kube
