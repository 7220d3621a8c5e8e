// A claim of Kubernetes' (ResourceClaim) as far as this node's driver has to do with it: plain
// data, and what lease it stands for. Pure.
//
//   the API server's answer ──parse_claim──► AllocatedClaim ──leases_of──► Claim, stored ──order_of──► the daemon's lease
//
// A claim is one lease, or has one for each of its parts: a container, where Kubernetes has made
// the claim of what a pod's containers ask for as resources; a request, where its configuration
// says so (`leasePer: request`).
#pragma once

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
// Letters, digits and '-': it becomes a part of file names. kInvalid.
Result<void> check_uid(std::string_view uid);

// "a" also of "a/b", one of the alternatives of request "a": what containers and configurations
// call it by.
std::string main_request(const std::string& request);

// A device that the scheduler has given to the claim.
struct ClaimDevice {
  std::string request;
  std::string pool;
  std::string device;
  std::string share_id;  // empty: the device is the claim's alone
  GpuUuid gpu{};
  Bytes memory{};  // of the device's, as the scheduler has counted; 0: it has counted all of it
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
  std::string pod;      // empty: several share it, or none has it now
  std::string pod_uid;  // as the API server says it
  std::vector<ClaimDevice> devices;
  std::vector<ClaimConfig> configs;
  bool of_resources =
      false;  // Kubernetes has made it, of what containers of the pod ask for as resources
};
// Of the API server's answer to a GET of the claim. kInvalid: that is no claim; kUnavailable: it is
// not allocated, or it is another of the same name.
Result<AllocatedClaim> parse_claim(const ClaimId& asked, std::string_view json);

struct ClaimTerms {
  std::optional<Bytes> soft_limit{};
  std::optional<int> priority{};
  std::string quantum{};  // as the daemon takes it; empty: as its GPUs say
  bool oversize = false;
  bool lease_per_request = false;
  bool operator==(const ClaimTerms&) const = default;
};

// The stored state of a claim that is prepared, for each of its leases.
struct Claim {
  ClaimId id;
  std::string part{};  // whose lease it is: a request, or "container-1"; empty: all of the claim's
  int number = 0;      // of the parts of its claim, in the order of their names
  std::string pod;
  std::string pod_uid;
  std::string token;
  Resource resource = Resource::kMemory;
  std::vector<ClaimDevice> devices;
  ClaimTerms terms;
  std::optional<LeaseId> lease{};        // as the daemon last said; not stored
  std::optional<LeaseId> first_lease{};  // since this program runs; not stored
  bool is_kept = false;                  // in the file
  // At the API server, as it last said, so that the scheduler does not count it; not stored.
  bool is_gone = false;
};
// As the claim would be stored, but for tokens. `gpus`: of this node. kInvalid: no lease could be
// that; the sentence is for whoever wrote the claim (`kubectl describe pod`). kUnavailable: a GPU
// that is not there now.
Result<std::vector<Claim>> leases_of(const AllocatedClaim& claim, const std::vector<NodeGpu>& gpus);

// Names each lease of each claim: the claim's uid, and "." and the part's number after it, if it is
// not all of it.
std::string key_of(const Claim& claim);

// The lease's name for the daemon: "claim-" and the key. Other plugins' leases begin otherwise.
std::string allocation_of(const std::string& key);
std::optional<std::string> find_key(std::string_view allocation);
LeaseOrder order_of(const Claim& claim);
// Its GPUs, each once.
std::vector<GpuUuid> gpus_of(const Claim& claim);

// The devices that are published for a GPU: one for the whole of it, one for parts of its memory,
// one for turns on it.
inline constexpr Resource kDevicesOfAGpu[] = {Resource::kGpu, Resource::kMemory, Resource::kTurn};
std::string device_name(const GpuUuid& gpu, Resource of);

}  // namespace gpurota::kube
