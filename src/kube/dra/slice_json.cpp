#include "kube/api/json_internal.h"
#include "kube/dra/claim.h"
#include "kube/dra/quantity.h"
#include "kube/dra/slice.h"

#include <algorithm>
#include <utility>

namespace gpurota::kube {
namespace {

// The most devices of a slice if a device has a taint or counters.
constexpr std::size_t kDevicesOfASlice = 64;
constexpr std::size_t kCountersOfASlice = 8;
// The longest text of an attribute, and of a version.
constexpr std::size_t kLongestText = 64;

Json json_of(const Attribute& attribute) {
  if (const bool* const flag = std::get_if<bool>(&attribute)) return {{"bool", *flag}};
  if (const auto* const number = std::get_if<std::int64_t>(&attribute)) return {{"int", *number}};
  if (const auto* const version = std::get_if<Version>(&attribute)) {
    return {{"version", text_of(version->text, kLongestText)}};
  }
  return {{"string", text_of(std::get<std::string>(attribute), kLongestText)}};
}

Json capacity_of(const SliceDevice& device) {
  // The API server takes no request policy for a device that one claim has alone.
  if (!device.is_shared) return {{"value", quantity_text(device.memory)}};
  Json range = {{"min", quantity_text(device.unit)}};
  if (!device.most.is_zero()) range["max"] = quantity_text(device.most);
  // The API server rejects a step that no claim could take.
  const Bytes most = device.most.is_zero() ? device.memory : device.most;
  if (most >= device.unit + device.unit) range["step"] = quantity_text(device.unit);
  return {{"value", quantity_text(device.memory)},
          {"requestPolicy", {{"default", quantity_text(device.usual)}, {"validRange", range}}}};
}

Json memory_counter(Bytes amount) { return {{"memory", {{"value", quantity_text(amount)}}}}; }

Json json_of(const SliceDevice& device, bool counters) {
  Json shown = {{"name", device.name}, {"capacity", {{"memory", capacity_of(device)}}}};
  if (device.is_shared) shown["allowMultipleAllocations"] = true;
  if (counters) {
    shown["consumesCounters"] = Json::array(
        {{{"counterSet", device.counter}, {"counters", memory_counter(device.counted)}}});
  }
  for (const auto& [name, attribute] : device.attributes) {
    shown["attributes"][name] = json_of(attribute);
  }
  for (const std::string& key : device.taints) {
    shown["taints"].push_back({{"key", key}, {"effect", "NoSchedule"}});
  }
  return shown;
}

// One counter set for each GPU; the device for the whole GPU takes all of it.
Json counter_sets(const std::vector<SliceDevice>& devices) {
  Json sets = Json::array();
  for (const SliceDevice& device : devices) {
    if (device.is_shared) continue;
    sets.push_back({{"name", device.counter}, {"counters", memory_counter(device.counted)}});
  }
  return sets;
}

// Splits the list into parts of at most `most`; at least one part.
std::vector<Json> parts_of(const Json& list, std::size_t most) {
  std::vector<Json> parts = {Json::array()};
  for (const Json& each : list) {
    if (parts.back().size() == most) parts.push_back(Json::array());
    parts.back().push_back(each);
  }
  return parts;
}

// The order of devices for a scheduler without counters (Kubernetes 1.34 and 1.35).
//
// Devices that one claim has alone come first. For the nth device of a request, the scheduler
// checks whether the nth device of the slice has capacity left (allocateDevice() of its structured
// allocator). If shared devices came first, a request for two GPUs would fail as soon as somebody
// has all of the slice's second device, whatever else is free.
//
// The shared devices come next, from the last GPU to the first. The scheduler takes the first
// device that fits, so requests for a whole GPU and for a part of one meet only where little is
// left between them.
void order_without_counters(Json& devices) {
  const auto shared = std::stable_partition(
      devices.begin(), devices.end(),
      [](const Json& device) { return !device.contains("allowMultipleAllocations"); });
  std::reverse(shared, devices.end());
}

}  // namespace

std::vector<std::string> slice_specs(const std::vector<SliceDevice>& devices,
                                     const std::string& node, std::int64_t generation,
                                     bool counters) {
  Json shown = Json::array();
  for (const SliceDevice& device : devices) shown.push_back(json_of(device, counters));
  std::vector<std::pair<const char*, Json>> contents;
  if (counters) {
    for (Json& part : parts_of(counter_sets(devices), kCountersOfASlice)) {
      contents.emplace_back("sharedCounters", std::move(part));
    }
  }
  for (Json& part : parts_of(shown, kDevicesOfASlice)) {
    if (!counters) order_without_counters(part);
    contents.emplace_back("devices", std::move(part));
  }
  std::vector<std::string> specs;
  for (auto& [field, list] : contents) {
    Json spec = {
        {"driver", kDriverName},
        {"nodeName", node},
        {"pool",
         {{"name", node}, {"generation", generation}, {"resourceSliceCount", contents.size()}}}};
    spec[field] = std::move(list);
    specs.push_back(spec.dump());
  }
  return specs;
}

}  // namespace gpurota::kube
