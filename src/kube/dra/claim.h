// The parts of a ResourceClaim of Kubernetes that this node's driver needs: plain data, and the
// leases that the claim stands for. Pure.
//
//   the API server's answer ──parse_claim──► AllocatedClaim ──leases_of──► Claim, stored
//     ──order_of──► the daemon's lease
//
// A claim is one lease, or has a lease for each of its parts. A part is a container, if Kubernetes
// made the claim from resources that a pod's containers ask for; or a request, if the configuration
// says so (`leasePer: request`).
#pragma once

#include "core/compute_share.h"
#include "kube/device_ids.h"
#include "kube/node_leases.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpurota::kube {

inline constexpr std::string_view kDriverName = "gpurota.dev";

struct ClaimId {
  std::string uid, space, name;
};
// Allows letters, digits and '-', because the uid becomes a part of file names. Otherwise kInvalid.
Result<void> check_uid(std::string_view uid);

// Returns "a" for "a" and also for "a/b" (alternative "b" of request "a"): containers and
// configurations use only the name of the request.
std::string main_request(const std::string& request);

// A device that the scheduler has given to the claim.
struct ClaimDevice {
  std::string request;
  std::string pool;
  std::string device;
  std::string share_id;  // empty: no other claim shares the device
  GpuUuid gpu{};
  Bytes memory{};             // of the device's, as the scheduler counted; 0: all of it
  bool named_amount = false;  // whether the claim names that amount; not stored
  bool operator==(const ClaimDevice&) const = default;
};

// A configuration for the driver, as JSON; those of the class come before those of the claim.
struct ClaimConfig {
  bool from_class = false;
  std::vector<std::string> requests;  // empty: all
  std::string parameters;
};

struct AllocatedClaim {
  ClaimId id;
  std::string pod;      // empty: shared by several, or used by none now
  std::string pod_uid;  // from the API server
  std::vector<ClaimDevice> devices;
  std::vector<ClaimConfig> configs;
  bool of_resources = false;  // Kubernetes made it from resources that the pod's containers ask for
};
// Parses the API server's answer to a GET of the claim. kInvalid: not a claim; kUnavailable: not
// allocated, or another claim of the same name.
Result<AllocatedClaim> parse_claim(const ClaimId& asked, std::string_view json);

struct ClaimTerms {
  std::optional<Bytes> soft_limit{};
  std::optional<int> priority{};
  std::string quantum{};  // in the daemon's syntax; empty: the GPUs' default
  bool oversize = false;
  ComputeShare compute{};
  bool lease_per_request = false;
  bool operator==(const ClaimTerms&) const = default;
};

// The stored state of one lease of a prepared claim.
struct Claim {
  ClaimId id;
  std::string part{};  // a request, or "container-1"; empty: the whole claim
  int number = 0;      // index among the parts of its claim, sorted by name
  std::string pod;
  std::string pod_uid;
  std::string token;
  Resource resource = Resource::kMemory;
  std::vector<ClaimDevice> devices;
  ClaimTerms terms;
  std::optional<LeaseId> lease{};        // as last reported by the daemon; not stored
  std::optional<LeaseId> first_lease{};  // since this program started; not stored
  bool is_kept = false;                  // stored in the file
  // The API server last said that the claim is gone, so the scheduler does not count it; not
  // stored.
  bool is_gone = false;
};
// The leases of the claim, complete except for tokens. `gpus`: of this node. kInvalid: no lease can
// be like that; the sentence is for the author of the claim (`kubectl describe pod`). kUnavailable:
// a GPU is missing now.
Result<std::vector<Claim>> leases_of(const AllocatedClaim& claim, const std::vector<NodeGpu>& gpus);

// Identifies a lease of a claim: the claim's uid, followed by "." and the part's number unless the
// lease is for the whole claim.
std::string key_of(const Claim& claim);

// The lease's name at the daemon: "claim-" and the key. Other plugins use other prefixes.
std::string allocation_of(const std::string& key);
std::optional<std::string> find_key(std::string_view allocation);
LeaseOrder order_of(const Claim& claim);
// The GPUs of the claim, each once.
std::vector<GpuUuid> gpus_of(const Claim& claim);

// The devices published for a GPU: the whole GPU, parts of its memory, and turns on it.
inline constexpr Resource kDevicesOfAGpu[] = {Resource::kGpu, Resource::kMemory, Resource::kTurn};
std::string device_name(const GpuUuid& gpu, Resource of);

}  // namespace gpurota::kube
