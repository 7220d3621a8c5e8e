// The terms of a lease beyond devices and memory, from a device class and a claim: the opaque
// parameters of `gpurota.dev` (docs/operate/kubernetes.md). Pure; strict: an unknown parameter is
// an error that names it.
#pragma once

#include "kube/dra/claim.h"

#include <optional>
#include <string>
#include <vector>

namespace gpurota::kube {

struct RequestTerms {
  std::optional<Resource> share;  // from the class
  ClaimTerms terms;
};
// The terms of one request of the claim. A class sets terms and limits; a claim changes terms
// within these limits. kInvalid.
Result<RequestTerms> terms_of(const std::vector<ClaimConfig>& configs, const std::string& request);

}  // namespace gpurota::kube
