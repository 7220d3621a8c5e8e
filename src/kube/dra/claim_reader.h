// Asks the API server for claims. Blocks; any thread but the state thread.
#pragma once

#include "kube/api/api_client.h"
#include "kube/dra/claim.h"

#include <chrono>
#include <string>

namespace gpurota::kube {

// As parse_claim(). kNotFound: there is none of this name.
Result<AllocatedClaim> read_claim(ApiClient& api, const ClaimId& claim,
                                  std::chrono::milliseconds patience);
// Whether it is there still, and has devices of this pool, as only then the scheduler counts it;
// one of its name with another uid is another. An error: the API server does not say.
Result<bool> has_claim(ApiClient& api, const ClaimId& claim, const std::string& pool,
                       std::chrono::milliseconds patience);

// "default/train"
std::string full_name(const ClaimId& claim);

}  // namespace gpurota::kube
