// Which devices a node offers to kubelet, and which of them can be had now: a pure function of what
// the daemon says of its GPUs and of what containers have already.
//
// Kubelet knows nothing of how the resources go together: that a GPU whose memory somebody has
// cannot be had whole. So what cannot be had is Unhealthy, and what a container has stays Healthy
// as long as its GPU is there.
#pragma once

#include "base/bytes.h"
#include "kube/device_ids.h"
#include "kube/machine.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::kube {

// Empty: there is no driver, or it does not say.
struct DriverVersions {
  std::string driver;
  std::string cuda;  // the newest that it serves
};

// A GPU as the daemon shows it.
struct NodeGpu {
  GpuUuid uuid;
  std::string label;  // what people call it
  int index = 0;      // PCI order
  PciPlace place{};
  Bytes memory{};                         // its size
  Bytes free{};                           // what a new slice could have
  Bytes free_for_turns{};                 // what a new lease in turns could have
  bool idle = false;                      // it could be had whole
  bool takes_turns = true;                // false: its memory is the machine's
  bool works = true;                      // not lost, not in error
  bool in_service = true;                 // and not drained
  std::string model{};                    // as the driver calls it
  std::string pci{};                      // as the driver writes it, 00000000:01:00.0
  std::optional<GpuUuid> nvlink_group{};  // GPUs that NVLink joins have the same one
  std::optional<GpuUuid> parent{};        // of a MIG instance
  std::string compute{};                  // its compute capability, "9.0"; empty: not known
  std::int64_t ecc_errors = 0;            // uncorrected ones, since the driver was loaded
  bool operator==(const NodeGpu&) const = default;
};

// A GPU that is lost is not shown any more; what was published of it does not work, and is not
// gone.
void keep_lost(std::vector<NodeGpu>& now, const std::vector<NodeGpu>& before);

struct Rules {
  Bytes unit = gib(1);               // of the resource memory
  int turns = 10;                    // places on each GPU, at most
  std::optional<Bytes> turn_memory;  // of a lease in turns; empty: all that slices leave
  bool operator==(const Rules&) const = default;
};

// Devices that a container has, or has been promised.
struct Taken {
  Resource resource;
  Device device;
  bool leased = false;  // the daemon counts it already
};

struct Offered {
  std::string id;
  bool healthy = false;
  std::optional<int> numa{};
  bool operator==(const Offered&) const = default;
};

// `host_memory`: what the daemon may use of the host's for memory that is moved out.
std::vector<Offered> offer(Resource resource, const std::vector<NodeGpu>& gpus,
                           const std::vector<Taken>& taken, const Rules& rules, Bytes host_memory);

// Places of each GPU among those in turns: all but one may have to be in host memory at once.
int turns_of(const NodeGpu& gpu, std::size_t gpus, const Rules& rules, Bytes host_memory);

}  // namespace gpurota::kube
