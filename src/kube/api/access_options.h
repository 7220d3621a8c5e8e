// The options by which a plugin finds the API server and its own node there; all plugins have them
// in common. Pure but for the environment of a pod, which says where the API server is.
#pragma once

#include "base/options.h"
#include "base/result.h"
#include "kube/api/api_client.h"

#include <string>
#include <vector>

namespace gpurota::kube {

struct ApiOptions {
  std::string node;  // as Kubernetes calls it
  ApiAccess access;
  bool operator==(const ApiOptions&) const = default;
};

std::vector<Option> api_rows(ApiOptions& options);
// Fills in options that were not given: the node's name is $NODE_NAME or the host's, and the API
// server is that of the cluster whose pod this is. kInvalid, kNotFound: an option is missing or
// makes no sense.
Result<void> complete(ApiOptions& options);

}  // namespace gpurota::kube
