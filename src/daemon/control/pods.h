// The name of a pod's container as a lease has it: NAMESPACE/POD/CONTAINER, beside its user
// wherever that is shown. No name in Kubernetes has a '/'. Pure.
#pragma once

#include "base/result.h"
#include "proto/types.h"

#include <optional>
#include <string>
#include <string_view>

namespace gpurota::daemon {

// kInvalid: not names as Kubernetes has them.
Result<std::string> pod_text(const proto::Pod& pod);
// Nothing: it is not known yet.
std::optional<proto::Pod> pod_of(std::string_view text);

}  // namespace gpurota::daemon
