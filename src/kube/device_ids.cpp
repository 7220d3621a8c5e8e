#include "kube/device_ids.h"

#include "base/text.h"

#include <fmt/format.h>

#include <charconv>

namespace gpurota::kube {
namespace {

constexpr std::string_view kMark = "::";
constexpr std::size_t kLongest = 63;  // the most that kubelet accepts

}  // namespace

const char* to_string(Resource resource) {
  switch (resource) {
    case Resource::kGpu:
      return "gpu";
    case Resource::kMemory:
      return "memory";
    case Resource::kTurn:
      return "turn";
  }
  return "";
}

Result<Resource> parse_resource(std::string_view word) {
  for (const Resource resource : kResources) {
    if (word == to_string(resource)) return resource;
  }
  return fail(Code::kInvalid, fmt::format("'{}' is not a resource: those are gpu, memory and turn",
                                          display_text(word, 60)));
}

std::string device_id(Resource resource, const Device& device) {
  if (resource == Resource::kGpu) return device.gpu.value;
  return fmt::format("{}{}{}", device.gpu.value, kMark, device.number);
}

Result<Device> parse_device_id(Resource resource, std::string_view id) {
  const auto unknown = [&] {
    return fail(Code::kInvalid, fmt::format("'{}' is not a device of gpurota's resource {}",
                                            display_text(id, 80), to_string(resource)));
  };
  if (id.empty() || id.size() > kLongest) return unknown();
  const std::size_t at = id.find(kMark);
  if (resource == Resource::kGpu) {
    if (at != std::string_view::npos) return unknown();
    return Device{GpuUuid{std::string(id)}, 0};
  }
  if (at == std::string_view::npos || at == 0) return unknown();
  const std::string_view digits = id.substr(at + kMark.size());
  Device device{GpuUuid{std::string(id.substr(0, at))}, 0};
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), device.number);
  if (error != std::errc() || end != digits.data() + digits.size() || device.number < 0) {
    return unknown();
  }
  return device;
}

Result<std::set<Device>> parse_device_ids(Resource resource, const std::vector<std::string>& ids) {
  if (ids.empty()) return fail(Code::kInvalid, "a container asks for no device");
  if (ids.size() > kMostDevices) {
    return fail(Code::kLimit,
                fmt::format("a container asks for {} devices, and can have at most {}", ids.size(),
                            kMostDevices));
  }
  std::set<Device> devices;
  for (const std::string& id : ids) {
    GPUROTA_ASSIGN_OR_RETURN(Device device, parse_device_id(resource, id));
    if (!devices.insert(std::move(device)).second) {
      return fail(Code::kInvalid,
                  fmt::format("a container asks for '{}' twice", display_text(id, 80)));
    }
  }
  return devices;
}

}  // namespace gpurota::kube
