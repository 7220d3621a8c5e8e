#include "base/text.h"
#include "kube/api/json_internal.h"
#include "kube/dra/claim.h"
#include "kube/dra/quantity.h"

#include <fmt/format.h>

#include <set>

namespace gpurota::kube {
namespace {

// More than the API server allows for one claim.
constexpr std::size_t kMostResults = 64;
constexpr std::size_t kMostParameters = 10 << 10;
// "true": Kubernetes' scheduler has made the claim from a pod's resources (KEP-5004).
constexpr const char* kOfResources = "resource.kubernetes.io/extended-resource-claim";

std::string shown(const ClaimId& id) {
  return fmt::format("{}/{}", display_text(id.space, 60), display_text(id.name, 60));
}

tl::unexpected<Error> no_claim(const ClaimId& id, const char* why) {
  return fail(Code::kInvalid, fmt::format("the API server's answer for claim {} cannot be read: {}",
                                          shown(id), why));
}

// The value of "memory" or "gpurota.dev/memory"; empty if neither is there.
std::string memory_in(const Json& capacity) {
  const std::string amount = text_at(capacity, "memory");
  return amount.empty() ? text_at(capacity, "gpurota.dev/memory") : amount;
}

Result<Bytes> memory_of(const Json& result) {
  const std::string amount = memory_in(at(result, "consumedCapacity"));
  if (amount.empty()) return Bytes();
  return parse_quantity(amount);
}

// The requests for which the claim, or one of its alternatives, names an amount.
std::set<std::string> requests_with_amounts(const Json& spec) {
  std::set<std::string> names;
  const auto take = [&](const Json& request, const std::string& name) {
    if (!memory_in(at(at(request, "capacity"), "requests")).empty()) names.insert(name);
  };
  for (const Json& request : list_at(at(spec, "devices"), "requests")) {
    const std::string name = text_at(request, "name");
    take(at(request, "exactly"), name);
    for (const Json& alternative : list_at(request, "firstAvailable")) {
      take(alternative, name + "/" + text_at(alternative, "name"));
    }
  }
  return names;
}

Result<ClaimDevice> device_of(const ClaimId& id, const Json& result) {
  ClaimDevice device;
  device.request = text_at(result, "request");
  const Json& admin = at(result, "adminAccess");
  if (admin.is_boolean() && admin.get<bool>()) {
    return fail(Code::kInvalid,
                fmt::format("request {} of claim {} has adminAccess, which gpurota does not give, "
                            "as the scheduler does not count it: leave adminAccess out, and watch "
                            "GPUs by gpurotad's metrics",
                            display_text(device.request, 60), shown(id)));
  }
  device.pool = text_at(result, "pool");
  device.device = text_at(result, "device");
  device.share_id = text_at(result, "shareID");
  if (device.request.empty() || device.pool.empty() || device.device.empty()) {
    return no_claim(id, "a result has no request, pool or device");
  }
  GPUROTA_ASSIGN_OR_RETURN(device.memory, memory_of(result));
  return device;
}

Result<ClaimConfig> config_of(const ClaimId& id, const Json& shown_config) {
  ClaimConfig config;
  config.from_class = text_at(shown_config, "source") == "FromClass";
  for (const Json& request : list_at(shown_config, "requests")) {
    if (!request.is_string())
      return no_claim(id, "a configuration is for something that is no request");
    config.requests.push_back(request.get<std::string>());
  }
  config.parameters = at(at(shown_config, "opaque"), "parameters").dump();
  if (config.parameters.size() > kMostParameters)
    return no_claim(id, "a configuration is too long");
  return config;
}

// Sets the pod, if exactly one pod uses the claim.
void take_pod(const Json& status, AllocatedClaim& claim) {
  const Json& users = list_at(status, "reservedFor");
  if (users.size() != 1 || text_at(users[0], "resource") != "pods") return;
  claim.pod = text_at(users[0], "name");
  claim.pod_uid = text_at(users[0], "uid");
}

}  // namespace

Result<AllocatedClaim> parse_claim(const ClaimId& asked, std::string_view json) {
  const Json object = parse_json(json);
  const Json& metadata = at(object, "metadata");
  const std::string uid = text_at(metadata, "uid");
  if (uid.empty()) return no_claim(asked, "it is no claim");
  if (uid != asked.uid) {
    return fail(Code::kUnavailable,
                fmt::format("claim {} is another one by now (uid {}): delete the pod", shown(asked),
                            display_text(uid, 60)));
  }
  const Json& status = at(object, "status");
  const Json& devices = at(at(status, "allocation"), "devices");
  AllocatedClaim claim;
  claim.id = asked;
  claim.of_resources = text_at(at(metadata, "annotations"), kOfResources) == "true";
  take_pod(status, claim);
  const std::set<std::string> named = requests_with_amounts(at(object, "spec"));
  for (const Json& result : list_at(devices, "results")) {
    if (text_at(result, "driver") != kDriverName) continue;
    GPUROTA_ASSIGN_OR_RETURN(ClaimDevice device, device_of(asked, result));
    device.named_amount = named.contains(device.request);
    claim.devices.push_back(std::move(device));
    if (claim.devices.size() > kMostResults) return no_claim(asked, "it has too many results");
  }
  if (claim.devices.empty()) {
    return fail(Code::kUnavailable,
                fmt::format("claim {} has no device of {} allocated", shown(asked), kDriverName));
  }
  for (const Json& config : list_at(devices, "config")) {
    if (text_at(at(config, "opaque"), "driver") != kDriverName) continue;
    GPUROTA_ASSIGN_OR_RETURN(ClaimConfig read, config_of(asked, config));
    claim.configs.push_back(std::move(read));
  }
  return claim;
}

}  // namespace gpurota::kube
