// The options that tell a plugin where the API server is and which node it runs on; common to all
// plugins. Pure except for the environment of a pod, which has the address of the API server.
#pragma once

#include "base/options.h"
#include "base/result.h"
#include "kube/api/api_client.h"

#include <string>
#include <vector>

namespace gpurota::kube {

struct ApiOptions {
  std::string node;  // the name of the node in Kubernetes
  ApiAccess access;
  bool operator==(const ApiOptions&) const = default;
};

std::vector<Option> api_rows(ApiOptions& options);
// Sets options that were not given: the node is $NODE_NAME or the host's name, and the API server
// is that of the cluster in which this pod runs. kInvalid, kNotFound: an option is missing or
// invalid.
Result<void> complete(ApiOptions& options);

}  // namespace gpurota::kube
