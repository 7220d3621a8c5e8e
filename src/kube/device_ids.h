// The resources of a node that kubelet counts, and the ids of their devices. An id contains the
// UUID of its GPU. Pure.
//
//   gpu      a whole GPU                           GPU-2f3c…
//   memory   a unit of a GPU's memory              GPU-2f3c…::7
//   turn     a place for a lease that takes turns  GPU-2f3c…::0
#pragma once

#include "base/ids.h"
#include "base/result.h"

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gpurota::kube {

enum class Resource { kGpu, kMemory, kTurn };
inline constexpr Resource kResources[] = {Resource::kGpu, Resource::kMemory, Resource::kTurn};

// "gpu", "memory", "turn": for people, the store and the names of our sockets; these never change.
const char* to_string(Resource resource);
Result<Resource> parse_resource(std::string_view word);

struct Device {
  GpuUuid gpu;
  int number = 0;  // among those of its GPU; a whole GPU is number 0
  auto operator<=>(const Device&) const = default;
};

std::string device_id(Resource resource, const Device& device);
// kInvalid: not an id of ours.
Result<Device> parse_device_id(Resource resource, std::string_view id);
// All ids, sorted; a duplicate is an error too. At most kMostDevices.
Result<std::set<Device>> parse_device_ids(Resource resource, const std::vector<std::string>& ids);

// The limit for one container: more than any node has.
inline constexpr std::size_t kMostDevices = 16384;

}  // namespace gpurota::kube
