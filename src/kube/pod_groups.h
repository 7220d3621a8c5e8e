// The pods of this machine that kubelet has not ended: each has a control group as long as it is
// there, whatever its containers do.
#pragma once

#include "base/result.h"

#include <set>
#include <string>

namespace gpurota::kube {

// Their UIDs; of a static pod its hash, by which kubelet knows it. Reads folders; any thread but
// the state thread. `host_root`: what "/" of the machine is. kNotFound: kubelet has no groups where
// it usually has them, so that nothing is known; so it is with any other error.
Result<std::set<std::string>> read_pod_groups(const std::string& host_root);

}  // namespace gpurota::kube
