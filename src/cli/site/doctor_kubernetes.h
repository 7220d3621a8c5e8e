// The checks of `gpurota doctor --kubernetes` on this node: whether kubelet, one of gpurota's
// plugins and the container runtime work together, and who else offers the same GPUs. Pure.
#pragma once

#include "containers/kubernetes_node.h"
#include "proto/codec.h"

#include <string>
#include <vector>

namespace gpurota::cli {

// `kubelet_dir`: the folder that was read.
std::vector<proto::Check> check_kubernetes(const containers::KubernetesNode& node,
                                           const std::string& kubelet_dir);

// For the daemon's leases, if it answers: whether containers with a lease are identified, and
// whether leases belong to claims that kubelet does not have.
proto::Check check_pods(const std::vector<proto::Lease>& leases,
                        const containers::KubernetesNode& node);

}  // namespace gpurota::cli
