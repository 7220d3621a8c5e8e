// The devices of a node for Kubernetes' scheduler (ResourceSlice): a pure function of the daemon's
// view of its GPUs and of what claims have.
//
// Each GPU is published as three devices: the whole GPU, which one claim has alone; parts of its
// memory; and turns on it. The scheduler subtracts what claims consume from a device's capacity. So
// the capacity is what claims have plus what is left for more; it excludes the use of others
// (`gpurota run`). The three devices share the GPU: where the API server supports counters, each
// takes the GPU's memory from a shared counter. In any case the attribute `available` of each says
// whether it can be had now, and device classes select by it.
#pragma once

#include "kube/device_ids.h"
#include "kube/offer.h"

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace gpurota::kube {

struct SliceRules {
  Bytes unit = gib(1);  // the unit of memory
  bool mixed = false;   // parts of memory and turns may share a GPU, despite the counters
  bool operator==(const SliceRules&) const = default;
};

// The part of a device that a claim has.
struct Held {
  Resource resource;
  GpuUuid gpu;
  Bytes memory;         // 0: all of it
  bool leased = false;  // the daemon already counts it
};

struct Version {
  std::string text;  // as semver.org defines it
  bool operator==(const Version&) const = default;
};
using Attribute = std::variant<bool, std::int64_t, std::string, Version>;

struct SliceDevice {
  std::string name;
  std::map<std::string, Attribute> attributes;
  bool is_shared = true;            // between several claims
  std::string counter;              // of the GPU's memory, shared by its devices
  Bytes counted{};                  // taken from the counter, however many claims have it
  Bytes memory;                     // what all claims may consume together
  Bytes usual;                      // the default of one claim
  Bytes most{};                     // the most of one claim; 0: whatever is left of `memory`
  Bytes unit;                       // the minimum, and the step
  std::vector<std::string> taints;  // keys; a device with a taint gets no new claim
  bool operator==(const SliceDevice&) const = default;
};

std::vector<SliceDevice> slice_devices(const std::vector<NodeGpu>& gpus,
                                       const std::vector<Held>& held, const DriverVersions& driver,
                                       Bytes host_memory, const SliceRules& rules);

// NVIDIA's name of the generation with this compute capability: "9.0" is Hopper. Empty: newer than
// this table, or not a capability.
std::string architecture_of(const std::string& compute);

// "580.159.04" becomes "580.159.4": numbers of a semantic version have no leading zeros. Empty: not
// a version.
std::string semantic_version(const std::string& text);

// The specs of all ResourceSlices for these devices, as JSON, with the generation of their pool.
// With `counters`, slices of counters come first: a slice has either counters or devices
// (Kubernetes 1.35).
std::vector<std::string> slice_specs(const std::vector<SliceDevice>& devices,
                                     const std::string& node, std::int64_t generation,
                                     bool counters);

}  // namespace gpurota::kube
