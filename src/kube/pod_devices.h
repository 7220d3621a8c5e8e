// Reads from kubelet's pod resources API which container has which devices. Blocks; any thread but
// the state thread.
#pragma once

#include "base/result.h"
#include "proto/types.h"

#include <chrono>
#include <set>
#include <string>
#include <vector>

namespace gpurota::kube {

struct PodDevices {
  proto::Pod pod;
  std::string resource;  // its full name
  std::set<std::string> devices;
};

// kUnavailable if kubelet does not answer at this socket in time.
Result<std::vector<PodDevices>> read_pod_devices(const std::string& socket,
                                                 std::chrono::milliseconds patience);

}  // namespace gpurota::kube
