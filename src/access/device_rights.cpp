#include "access/device_rights.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace gpurota::access {
namespace {

std::optional<int> number_after(std::string_view text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  text.remove_prefix(prefix.size());
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || text.front() == '-') return std::nullopt;
  return number;
}

// Calls take(key, rest) for each line that has a `separator`, which ends the key.
template <class Take>
void for_each_line(std::string_view text, char separator, Take take) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t middle = line.find(separator);
    if (middle == line.npos) continue;
    std::string_view rest = line.substr(middle + 1);
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    take(line.substr(0, middle), rest);
  }
}

// The highest minor number of a GPU: NV_MINOR_DEVICE_NUMBER_REGULAR_MAX of NVIDIA's open kernel
// modules. The driver's other files of the same major number (nvidia-modeset, nvidiactl) have
// higher ones.
constexpr unsigned kLastGpuMinor = 247;

// The least and the highest minor number of the MIG instances' capabilities. Capabilities that
// belong to no instance (config, monitor) have lower numbers.
std::pair<unsigned, unsigned> instance_minors(const MigMinors& minors) {
  const auto [least, most] =
      std::minmax_element(minors.begin(), minors.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; });
  return {static_cast<unsigned>(least->second), static_cast<unsigned>(most->second)};
}

std::string capability_file(int minor) { return fmt::format("nvidia-caps/nvidia-cap{}", minor); }

const GpuInfo* find(const std::vector<GpuInfo>& gpus, const GpuUuid& uuid) {
  const auto it =
      std::find_if(gpus.begin(), gpus.end(), [&](const GpuInfo& gpu) { return gpu.uuid == uuid; });
  return it == gpus.end() ? nullptr : &*it;
}

// The files of both capabilities of an instance: of its GPU instance and of its compute instance.
std::set<std::string> capability_files(const GpuInfo& parent, const GpuInfo& instance,
                                       const MigMinors& minors) {
  std::set<std::string> files;
  if (!parent.device_minor || !instance.gpu_instance || !instance.compute_instance) return files;
  const std::string slice =
      fmt::format("gpu{}/gi{}/", *parent.device_minor, *instance.gpu_instance);
  for (const std::string& name :
       {slice + "access", fmt::format("{}ci{}/access", slice, *instance.compute_instance)}) {
    const auto minor = minors.find(name);
    if (minor != minors.end()) files.insert(capability_file(minor->second));
  }
  return files;
}

}  // namespace

MigMinors parse_mig_minors(std::string_view text) {
  MigMinors minors;
  for_each_line(text, ' ', [&](std::string_view name, std::string_view rest) {
    const auto minor = number_after(rest, "");
    if (minor && name.starts_with("gpu") && name.ends_with("/access")) {
      minors.emplace(std::string(name), *minor);
    }
  });
  return minors;
}

std::optional<FileKind> kind_of(std::string_view name, const MigMinors& minors) {
  if (number_after(name, "nvidia")) return FileKind::kGpu;
  const auto capability = number_after(name, "nvidia-caps/nvidia-cap");
  const bool known =
      capability && std::any_of(minors.begin(), minors.end(),
                                [&](const auto& entry) { return entry.second == *capability; });
  return known ? std::optional(FileKind::kCapability) : std::nullopt;
}

std::set<std::string> files_of(const std::vector<GpuInfo>& gpus, const std::set<GpuUuid>& uuids,
                               const MigMinors& minors) {
  std::set<std::string> files;
  for (const GpuUuid& uuid : uuids) {
    const GpuInfo* const gpu = find(gpus, uuid);
    if (!gpu) continue;
    const GpuInfo* const board = gpu->parent.value.empty() ? gpu : find(gpus, gpu->parent);
    if (!board || !board->device_minor) continue;
    files.insert(fmt::format("nvidia{}", *board->device_minor));
    if (board != gpu) files.merge(capability_files(*board, *gpu, minors));
  }
  return files;
}

std::map<std::string, std::set<uid_t>> holders(const std::vector<GpuInfo>& gpus,
                                               const std::vector<Holding>& holdings,
                                               const MigMinors& minors) {
  std::map<std::string, std::set<uid_t>> files;
  for (const Holding& holding : holdings) {
    for (const std::string& file : files_of(gpus, {holding.gpu}, minors)) {
      files[file].insert(holding.uid);
    }
  }
  return files;
}

DeviceFences fences(const std::map<std::string, DeviceNumber>& numbers,
                    const std::set<std::string>& open, const MigMinors& minors) {
  // One fence for all devices of a kind: they have one major number.
  std::map<unsigned, DeviceFence> by_major;
  for (const auto& [name, number] : numbers) {
    const auto kind = kind_of(name, minors);
    if (!kind) continue;
    DeviceFence& fence = by_major[number.major];
    fence.major = number.major;
    if (kind == FileKind::kGpu) {
      fence.last = kLastGpuMinor;
    } else {
      const auto [least, most] = instance_minors(minors);
      fence.first = least;
      fence.last = most;
    }
    if (open.contains(name)) fence.open.insert(number.minor);
  }
  DeviceFences all;
  for (auto& [major, fence] : by_major) all.push_back(std::move(fence));
  return all;
}

std::string acl_text(FileKind kind, bool owner_may, const Who& who) {
  const char* const all = kind == FileKind::kGpu ? "rw-" : "r--";
  std::string text = fmt::format("user::{}", owner_may ? all : "---");
  for (const uid_t uid : who.users) text += fmt::format(",user:{}:{}", uid, all);
  text += ",group::---";
  for (const gid_t gid : who.groups) text += fmt::format(",group:{}:{}", gid, all);
  return text + fmt::format(",mask::{},other::---", all);
}

std::optional<mode_t> mode_of_helper(std::string_view params) {
  std::optional<mode_t> mode;
  bool modifies = true;
  for_each_line(params, ':', [&](std::string_view key, std::string_view rest) {
    const auto number = number_after(rest, "");
    if (!number) return;
    if (key == "DeviceFileMode") mode = static_cast<mode_t>(*number);
    if (key == "ModifyDeviceFiles") modifies = *number == 1;
  });
  return modifies ? mode : std::nullopt;
}

}  // namespace gpurota::access
