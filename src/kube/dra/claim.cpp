#include "kube/dra/claim.h"

#include "base/text.h"
#include "kube/api/api_client.h"
#include "kube/dra/claim_terms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

namespace gpurota::kube {
namespace {

constexpr std::string_view kAllocation = "claim-";
// Kubernetes' uids have 36; with its prefix and suffix, the uid becomes a name at the daemon, of at
// most 64.
constexpr std::size_t kLongestUid = 54;

// The memory that the claim has of each GPU: two shares of one GPU belong to one lease.
std::map<GpuUuid, Bytes> memory_on(const std::vector<ClaimDevice>& devices) {
  std::map<GpuUuid, Bytes> on;
  for (const ClaimDevice& device : devices) on[device.gpu] += device.memory;
  return on;
}

struct Found {
  GpuUuid gpu;
  Resource of = Resource::kMemory;
};
Result<Found> find_device(const std::string& name, const std::vector<NodeGpu>& gpus) {
  for (const NodeGpu& gpu : gpus) {
    for (const Resource of : kDevicesOfAGpu) {
      if (name == device_name(gpu.uuid, of)) return Found{gpu.uuid, of};
    }
  }
  return fail(Code::kUnavailable,
              fmt::format("this node has no device {} now: gpurota status shows its GPUs",
                          display_text(name, 80)));
}

const char* share_text(Resource share) {
  return share == Resource::kTurn ? "turns" : share == Resource::kMemory ? "memory" : "whole GPUs";
}

// The resource of one device of the claim, from the device and from its class.
Result<Resource> resource_of(const ClaimDevice& device, Resource of,
                             std::optional<Resource> share) {
  // Where the scheduler cannot share a device, it has given the claim all of it.
  const bool is_all = of == Resource::kMemory && device.memory.is_zero();
  const Resource natural = is_all ? Resource::kGpu : of;
  if (!share || *share == natural) return natural;
  // A class of an earlier version selects whole GPUs among the devices for memory.
  if (of == Resource::kMemory && *share != Resource::kTurn) return *share;
  return fail(Code::kInvalid,
              fmt::format("the device class of request {} gives {}, and its selector has chosen "
                          "{}: use one of gpurota's device classes",
                          display_text(device.request, 60), share_text(*share),
                          display_text(device.device, 80)));
}

tl::unexpected<Error> not_one_lease(bool of_resources, const char* what) {
  if (of_resources) {
    return fail(Code::kInvalid,
                fmt::format("the devices for a container of this pod {}, and a container has one "
                            "lease: let it ask for one of gpurota's resources",
                            what));
  }
  return fail(Code::kInvalid,
              fmt::format("the devices of this claim {}, and one claim is one lease: "
                          "make a claim for each, or write leasePer: request in its configuration",
                          what));
}

// The part for a request: container 1's first request is "container-1-request-0".
std::string part_of(const std::string& request, bool of_resources, const ClaimTerms& terms) {
  const std::string main = main_request(request);
  if (of_resources) return main.substr(0, main.find("-request-"));
  return terms.lease_per_request ? main : "";
}

// A device of the claim, with its resource and terms.
struct Wanted {
  ClaimDevice device;
  Resource resource;
  ClaimTerms terms;
};

Result<Wanted> wanted_of(const AllocatedClaim& allocated, ClaimDevice device,
                         const std::vector<NodeGpu>& gpus) {
  GPUROTA_ASSIGN_OR_RETURN(const Found found, find_device(device.device, gpus));
  device.gpu = found.gpu;
  GPUROTA_ASSIGN_OR_RETURN(const RequestTerms said, terms_of(allocated.configs, device.request));
  GPUROTA_ASSIGN_OR_RETURN(const Resource resource, resource_of(device, found.of, said.share));
  return Wanted{std::move(device), resource, said.terms};
}

// Sets the memory of a lease that takes turns, if the claim names no amount: on each GPU, as much
// as the smallest has. The scheduler gave the claim all of each GPU, but a lease has the same
// amount on each.
void level_turns(Claim& claim) {
  std::vector<ClaimDevice>& devices = claim.devices;
  if (claim.resource != Resource::kTurn || gpus_of(claim).size() != devices.size()) return;
  if (std::any_of(devices.begin(), devices.end(),
                  [](const ClaimDevice& each) { return each.named_amount; })) {
    return;
  }
  const Bytes least =
      std::min_element(devices.begin(), devices.end(), [](const auto& a, const auto& b) {
        return a.memory < b.memory;
      })->memory;
  for (ClaimDevice& device : devices) device.memory = least;
}

// Whether the collected devices can be one lease.
Result<void> check_lease(const Claim& claim, bool of_resources) {
  const auto on = memory_on(claim.devices);
  const bool equal = std::all_of(
      on.begin(), on.end(), [&](const auto& each) { return each.second == on.begin()->second; });
  if (claim.resource != Resource::kGpu && !equal)
    return not_one_lease(of_resources, "have unequal amounts of memory");
  if (claim.resource != Resource::kTurn && (!claim.terms.quantum.empty() || claim.terms.oversize)) {
    return fail(
        Code::kInvalid,
        "only turns have a quantum or are oversize: take them out of the configuration, or use "
        "the device class turns.gpurota.dev");
  }
  const auto share =
      check_compute_share(claim.terms.compute, {.limited = claim.resource != Resource::kGpu,
                                                .swap = claim.resource == Resource::kTurn,
                                                .gpus = static_cast<int>(on.size())});
  if (share) return {};
  const bool of_memory = claim.resource == Resource::kMemory;
  if (of_memory && claim.terms.compute.most != 0 && on.size() == 1) {
    return fail(Code::kInvalid, fmt::format("compute {}% is above computeMax {}%: ask for less",
                                            claim.terms.compute.least, claim.terms.compute.most));
  }
  return fail(Code::kInvalid,
              "only memory of one GPU has a share of the compute time: take compute and computeMax "
              "out of the configuration, or use the device class memory.gpurota.dev for one GPU");
}

Result<void> add_to(Claim& claim, Wanted wanted, bool of_resources) {
  if (!claim.devices.empty()) {
    if (wanted.resource != claim.resource)
      return not_one_lease(of_resources, "are of several kinds");
    if (!(wanted.terms == claim.terms))
      return not_one_lease(of_resources, "have several configurations");
  }
  claim.resource = wanted.resource;
  claim.terms = std::move(wanted.terms);
  claim.devices.push_back(std::move(wanted.device));
  return {};
}

}  // namespace

Result<void> check_uid(std::string_view uid) {
  const bool good = !uid.empty() && uid.size() <= kLongestUid &&
                    std::all_of(uid.begin(), uid.end(),
                                [](unsigned char c) { return std::isalnum(c) != 0 || c == '-'; });
  if (good) return {};
  return fail(Code::kInvalid, fmt::format("'{}' is not the uid of a claim", display_text(uid, 80)));
}

std::string main_request(const std::string& request) {
  return request.substr(0, request.find('/'));
}

std::string key_of(const Claim& claim) {
  return claim.part.empty() ? claim.id.uid : fmt::format("{}.{}", claim.id.uid, claim.number);
}

std::string allocation_of(const std::string& key) { return std::string(kAllocation) + key; }

std::optional<std::string> find_key(std::string_view allocation) {
  if (!allocation.starts_with(kAllocation)) return std::nullopt;
  return std::string(allocation.substr(kAllocation.size()));
}

std::string device_name(const GpuUuid& gpu, Resource of) {
  std::string name = gpu.value;
  for (char& c : name) {
    const auto letter = static_cast<unsigned char>(c);
    c = std::isalnum(letter) != 0 ? static_cast<char>(std::tolower(letter)) : '-';
  }
  constexpr std::size_t kLongest = 63 - 6;
  name = name.substr(0, kLongest);
  return of == Resource::kTurn ? name + "-turns" : of == Resource::kGpu ? name + "-whole" : name;
}

std::vector<GpuUuid> gpus_of(const Claim& claim) {
  std::vector<GpuUuid> gpus;
  for (const auto& [gpu, memory] : memory_on(claim.devices)) gpus.push_back(gpu);
  return gpus;
}

Result<std::vector<Claim>> leases_of(const AllocatedClaim& allocated,
                                     const std::vector<NodeGpu>& gpus) {
  std::map<std::string, Claim> parts;
  for (const ClaimDevice& device : allocated.devices) {
    GPUROTA_ASSIGN_OR_RETURN(Wanted wanted, wanted_of(allocated, device, gpus));
    const std::string part = part_of(device.request, allocated.of_resources, wanted.terms);
    if (!part.empty() && !is_object_name(part)) {
      return fail(Code::kInvalid, fmt::format("'{}' is not the name of a request",
                                              display_text(device.request, 60)));
    }
    Claim& claim = parts[part];
    claim.id = allocated.id;
    claim.part = part;
    claim.pod = allocated.pod;
    claim.pod_uid = allocated.pod_uid;
    GPUROTA_TRY(add_to(claim, std::move(wanted), allocated.of_resources));
  }
  std::vector<Claim> leases;
  for (auto& [part, claim] : parts) {
    level_turns(claim);
    GPUROTA_TRY(check_lease(claim, allocated.of_resources));
    claim.number = static_cast<int>(leases.size());
    leases.push_back(std::move(claim));
  }
  return leases;
}

LeaseOrder order_of(const Claim& claim) {
  LeaseOrder order;
  order.allocation = allocation_of(key_of(claim));
  order.token = claim.token;
  proto::LeaseRequest& request = order.request;
  request.gpu_ids.emplace();
  const auto on = memory_on(claim.devices);
  for (const auto& [gpu, memory] : on) request.gpu_ids->push_back(gpu.value);
  const Bytes memory = on.empty() ? Bytes() : on.begin()->second;
  if (claim.resource != Resource::kGpu && !memory.is_zero()) request.memory = SizeSpec{memory, 0};
  if (claim.resource == Resource::kTurn) request.swap = true;
  if (claim.terms.oversize) request.oversize = true;
  if (claim.terms.soft_limit) request.soft_limit = SizeSpec{*claim.terms.soft_limit, 0};
  request.priority = claim.terms.priority;
  if (!claim.terms.quantum.empty()) request.quantum = claim.terms.quantum;
  if (claim.terms.compute.least != 0) request.compute_percent = claim.terms.compute.least;
  if (claim.terms.compute.most != 0) request.compute_max_percent = claim.terms.compute.most;
  const std::string& pod = claim.pod.empty() ? claim.id.name : claim.pod;
  order.pod = proto::Pod{claim.id.space, pod, claim.part.empty() ? claim.id.name : claim.part};
  if (!claim.pod_uid.empty()) order.pod_uid = claim.pod_uid;
  return order;
}

}  // namespace gpurota::kube
