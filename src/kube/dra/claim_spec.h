// The file by which a container engine gives a container the lease of a claim: a spec of the Container Device Interface for each claim that
// is prepared. For root only, as the token is in it. Blocks as long as the disk does: not on the state thread.
#pragma once

#include "kube/container_answer.h"

#include <string>

namespace gpurota::kube {

// "k8s.gpurota.dev/claim=UID". Not of the vendor gpurota.dev, whose files gpurotad keeps.
std::string spec_device(const std::string& uid);
// In the place of the one that is there; the folder is made if it is not there.
Result<void> write_spec(const std::string& folder, const std::string& uid,
                        const ContainerAnswer& answer);
// That it is not there is no error.
Result<void> remove_spec(const std::string& folder, const std::string& uid);

}  // namespace gpurota::kube
