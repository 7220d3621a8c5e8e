// The preferred devices for a container: all memory on one GPU, the fullest that has room; turns on
// the GPUs with the fewest waiting; whole GPUs close together. Kubelet treats the result as a hint.
// Pure.
#pragma once

#include "kube/device_ids.h"

#include <map>
#include <string>
#include <vector>

namespace gpurota::kube {

// Chooses `size` of `available`, including all of `must_include`; fewer if there are not enough.
// Unknown ids come last. `numa`: the NUMA nodes of the GPUs for which it is known.
std::vector<std::string> prefer(Resource resource, const std::vector<std::string>& available,
                                const std::vector<std::string>& must_include, std::size_t size,
                                const std::map<GpuUuid, int>& numa);

}  // namespace gpurota::kube
