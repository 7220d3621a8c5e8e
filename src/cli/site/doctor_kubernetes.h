// The checks of `gpurota doctor --kubernetes` on this node: whether kubelet, one of gpurota's
// plugins and the container runtime can work together, and who else gives the same GPUs away. Pure.
#pragma once

#include "containers/kubernetes_node.h"
#include "proto/codec.h"

#include <string>
#include <vector>

namespace gpurota::cli {

// `kubelet_dir`: where it was looked for.
std::vector<proto::Check> check_kubernetes(const containers::KubernetesNode& node,
                                           const std::string& kubelet_dir);

// Of the daemon's leases, if it answers: containers that have one, whether it is known which they
// are, and leases of claims that kubelet does not know.
proto::Check check_pods(const std::vector<proto::Lease>& leases,
                        const containers::KubernetesNode& node);

}  // namespace gpurota::cli
