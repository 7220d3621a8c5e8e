#include "kube/dra/claim_reader.h"

#include "kube/api/json_internal.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota::kube {
namespace {

// GETs the claim; any HTTP status is a success.
Result<ApiAnswer> ask_for(ApiClient& api, const ClaimId& claim,
                          std::chrono::milliseconds patience) {
  const std::string path = fmt::format("/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims/{}",
                                       claim.space, claim.name);
  return api.call("GET", path, {}, patience);
}

bool has_devices(const Json& claim, const std::string& pool) {
  const Json& devices = at(at(at(claim, "status"), "allocation"), "devices");
  const Json& results = list_at(devices, "results");
  return std::any_of(results.begin(), results.end(), [&](const Json& result) {
    return text_at(result, "driver") == kDriverName && text_at(result, "pool") == pool;
  });
}

Error refusal(const ApiAnswer& answer, const ClaimId& claim) {
  return error_of(answer, "read the claim " + full_name(claim));
}

}  // namespace

std::string full_name(const ClaimId& claim) { return claim.space + "/" + claim.name; }

Result<AllocatedClaim> read_claim(ApiClient& api, const ClaimId& claim,
                                  std::chrono::milliseconds patience) {
  GPUROTA_ASSIGN_OR_RETURN(const ApiAnswer answer, ask_for(api, claim, patience));
  if (!answer.good()) return tl::unexpected(refusal(answer, claim));
  return parse_claim(claim, answer.body);
}

Result<bool> has_claim(ApiClient& api, const ClaimId& claim, const std::string& pool,
                       std::chrono::milliseconds patience) {
  GPUROTA_ASSIGN_OR_RETURN(const ApiAnswer answer, ask_for(api, claim, patience));
  const Json object = parse_json(answer.body);
  const std::string uid = text_at(at(object, "metadata"), "uid");
  if (answer.good() && !uid.empty()) return uid == claim.uid && has_devices(object, pool);
  if (answer.good()) {
    return fail(Code::kInvalid, "the API server's answer for " + full_name(claim) + " is no claim");
  }
  Error refused = refusal(answer, claim);
  // A 404 from a server without this resource type says nothing about claims.
  const std::string kind = text_at(at(object, "details"), "kind");
  if (refused.code == Code::kNotFound && kind == "resourceclaims") return false;
  return tl::unexpected(std::move(refused));
}

}  // namespace gpurota::kube
