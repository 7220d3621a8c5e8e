// The devices of a node as Kubernetes' scheduler is told of them (ResourceSlice): a pure function
// of what the daemon says of its GPUs and of what claims have.
//
// Each GPU is three devices: one for the whole of it, which one claim has alone, one for parts of
// its memory and one for turns on it. The scheduler counts what claims consume against the
// capacity, so that this is what claims have and what is left for more: what others have (`gpurota
// run`) is not in it. As all are of one GPU, each takes the GPU's memory from a counter that they
// share, where the API server has such counters; and everywhere `available` says of each whether it
// can be had now, and device classes select by it.
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
  Bytes unit = gib(1);  // memory is counted in these
  bool mixed = false;   // parts of the memory and turns may be on one GPU, whatever the counters
  bool operator==(const SliceRules&) const = default;
};

// The part of a device that a claim has.
struct Held {
  Resource resource;
  GpuUuid gpu;
  Bytes memory;         // 0: all of it
  bool leased = false;  // the daemon counts it
};

struct Version {
  std::string text;  // as semver.org has it
  bool operator==(const Version&) const = default;
};
using Attribute = std::variant<bool, std::int64_t, std::string, Version>;

struct SliceDevice {
  std::string name;
  std::map<std::string, Attribute> attributes;
  bool is_shared = true;            // by several claims
  std::string counter;              // of the GPU's memory, which its devices share
  Bytes counted{};                  // what it takes of the counter, however many claims have it
  Bytes memory;                     // what all claims may consume together
  Bytes usual;                      // what one consumes that does not say
  Bytes most{};                     // what one may consume; 0: whatever is left of `memory`
  Bytes unit;                       // the least, and the step
  std::vector<std::string> taints;  // keys; no new claim is given a device that has one
  bool operator==(const SliceDevice&) const = default;
};

std::vector<SliceDevice> slice_devices(const std::vector<NodeGpu>& gpus,
                                       const std::vector<Held>& held, const DriverVersions& driver,
                                       Bytes host_memory, const SliceRules& rules);

// NVIDIA's name of the generation that has this compute capability: "9.0" is Hopper. Empty: it is a
// newer one than this knows, or none.
std::string architecture_of(const std::string& compute);

// "580.159.04" is "580.159.4": numbers of a semantic version have no zeros before them. Empty: it
// is none.
std::string semantic_version(const std::string& text);

// The specs of as many ResourceSlices as these devices take, as JSON, with their pool's generation.
// With `counters` those come first: a slice has either counters or devices (Kubernetes 1.35).
std::vector<std::string> slice_specs(const std::vector<SliceDevice>& devices,
                                     const std::string& node, std::int64_t generation,
                                     bool counters);

}  // namespace gpurota::kube
