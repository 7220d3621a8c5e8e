// The name of a pod's container in a lease: NAMESPACE/POD/CONTAINER, shown wherever the lease's
// user is shown. No name in Kubernetes has a '/'. Pure.
#pragma once

#include "base/result.h"
#include "proto/types.h"

#include <optional>
#include <string>
#include <string_view>

namespace gpurota::daemon {

// kInvalid: a name is not valid in Kubernetes.
Result<std::string> pod_text(const proto::Pod& pod);
// Empty: the pod is not known yet.
std::optional<proto::Pod> pod_of(std::string_view text);

}  // namespace gpurota::daemon
