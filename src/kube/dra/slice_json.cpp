#include "kube/api/json_internal.h"
#include "kube/dra/claim.h"
#include "kube/dra/quantity.h"
#include "kube/dra/slice.h"

#include <algorithm>

namespace gpurota::kube {
namespace {

// As many as a slice may have where a device has a taint.
constexpr std::size_t kDevicesOfASlice = 64;
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
  Json range = {{"min", quantity_text(device.unit)}};
  if (!device.most.is_zero()) range["max"] = quantity_text(device.most);
  // A step that no claim could take is an error to the API server.
  const Bytes most = device.most.is_zero() ? device.memory : device.most;
  if (most >= device.unit + device.unit) range["step"] = quantity_text(device.unit);
  return {{"value", quantity_text(device.memory)},
          {"requestPolicy", {{"default", quantity_text(device.usual)}, {"validRange", range}}}};
}

Json json_of(const SliceDevice& device) {
  Json shown = {{"name", device.name},
                {"allowMultipleAllocations", true},
                {"capacity", {{"memory", capacity_of(device)}}}};
  for (const auto& [name, attribute] : device.attributes) {
    shown["attributes"][name] = json_of(attribute);
  }
  for (const std::string& key : device.taints) {
    shown["taints"].push_back({{"key", key}, {"effect", "NoSchedule"}});
  }
  return shown;
}

}  // namespace

std::vector<std::string> slice_specs(const std::vector<SliceDevice>& devices,
                                     const std::string& node, std::int64_t generation) {
  const std::size_t count =
      std::max<std::size_t>((devices.size() + kDevicesOfASlice - 1) / kDevicesOfASlice, 1);
  std::vector<std::string> specs;
  for (std::size_t i = 0; i < count; ++i) {
    Json list = Json::array();
    for (std::size_t at = i * kDevicesOfASlice;
         at < std::min(devices.size(), (i + 1) * kDevicesOfASlice); ++at) {
      list.push_back(json_of(devices[at]));
    }
    const Json spec = {
        {"driver", kDriverName},
        {"nodeName", node},
        {"pool", {{"name", node}, {"generation", generation}, {"resourceSliceCount", count}}},
        {"devices", std::move(list)}};
    specs.push_back(spec.dump());
  }
  return specs;
}

}  // namespace gpurota::kube
