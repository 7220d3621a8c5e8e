// Reads claims from the API server. Blocks; any thread but the state thread.
#pragma once

#include "kube/api/api_client.h"
#include "kube/dra/claim.h"

#include <chrono>
#include <string>

namespace gpurota::kube {

// Errors as from parse_claim(). kNotFound: there is no claim of this name.
Result<AllocatedClaim> read_claim(ApiClient& api, const ClaimId& claim,
                                  std::chrono::milliseconds patience);
// Whether the claim still exists and has devices of this pool: only then does the scheduler count
// it. A claim with the same name but another uid does not count. Error: the API server gave no
// answer.
Result<bool> has_claim(ApiClient& api, const ClaimId& claim, const std::string& pool,
                       std::chrono::milliseconds patience);

// "default/train"
std::string full_name(const ClaimId& claim);

}  // namespace gpurota::kube
