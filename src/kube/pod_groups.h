// The pods of this machine that kubelet has not ended: a pod has a control group as long as it
// exists, whatever its containers do.
#pragma once

#include "base/result.h"

#include <set>
#include <string>

namespace gpurota::kube {

// Their UIDs; for a static pod its hash, which is its UID for kubelet. Reads folders; any thread
// but the state thread. `host_root`: the folder where the machine's "/" is. kNotFound: kubelet has
// no groups here. After any error nothing is known.
Result<std::set<std::string>> read_pod_groups(const std::string& host_root);

}  // namespace gpurota::kube
