// The file with which a container engine gives a container a lease of a claim: a Container Device
// Interface spec for each lease of a prepared claim. Readable by root only, because it has the
// token. Blocks as long as the disk does: not on the state thread.
#pragma once

#include "kube/container_answer.h"

#include <string>

namespace gpurota::kube {

// "k8s.gpurota.dev/claim=KEY". Not the vendor gpurota.dev: gpurotad manages that one's files.
std::string spec_device(const std::string& key);
// Replaces an existing spec; makes the folder if it is missing.
Result<void> write_spec(const std::string& folder, const std::string& key,
                        const ContainerAnswer& answer);
// Removes all specs of the claim; succeeds if there are none.
Result<void> remove_specs(const std::string& folder, const std::string& uid);

}  // namespace gpurota::kube
