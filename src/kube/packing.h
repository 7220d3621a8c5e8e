// Which devices a container had best have: all memory on one GPU, the fullest that has room; turns
// on the GPUs where the fewest wait; whole GPUs close together. Kubelet takes it as a hint. Pure.
#pragma once

#include "kube/device_ids.h"

#include <map>
#include <string>
#include <vector>

namespace gpurota::kube {

// `size` of `available`, with all of `must_include`; fewer if there are not so many. Ids that are
// none of ours come last. `numa`: of GPUs where it is known.
std::vector<std::string> prefer(Resource resource, const std::vector<std::string>& available,
                                const std::vector<std::string>& must_include, std::size_t size,
                                const std::map<GpuUuid, int>& numa);

}  // namespace gpurota::kube
