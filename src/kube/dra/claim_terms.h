// The terms of a lease beyond devices and memory, from a class of devices and a claim: the opaque
// parameters of `gpurota.dev` (docs/operate/kubernetes.md). Pure; strict: an unknown parameter is
// an error that names it.
#pragma once

#include "kube/dra/claim.h"

#include <optional>
#include <string>
#include <vector>

namespace gpurota::kube {

struct RequestTerms {
  std::optional<Resource> share;  // as the class says
  ClaimTerms terms;
};
// Of one request of the claim: a class says what is so and how far a claim may go, and a claim
// changes what it may. kInvalid.
Result<RequestTerms> terms_of(const std::vector<ClaimConfig>& configs, const std::string& request);

}  // namespace gpurota::kube
