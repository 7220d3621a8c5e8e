// The file by which a container engine gives a container a lease of a claim: a spec of the
// Container Device Interface for each lease of a claim that is prepared. For root only, as the
// token is in it. Blocks as long as the disk does: not on the state thread.
#pragma once

#include "kube/container_answer.h"

#include <string>

namespace gpurota::kube {

// "k8s.gpurota.dev/claim=KEY". Not of the vendor gpurota.dev, whose files gpurotad keeps.
std::string spec_device(const std::string& key);
// In the place of the one that is there; the folder is made if it is not there.
Result<void> write_spec(const std::string& folder, const std::string& key,
                        const ContainerAnswer& answer);
// Removes all specifications of the claim. Having none is no error.
Result<void> remove_specs(const std::string& folder, const std::string& uid);

}  // namespace gpurota::kube
