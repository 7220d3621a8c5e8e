// CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER, interpreted as the driver does.
#include "sim/cuda/driver.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

namespace gpurota::sim {
namespace {

std::uint64_t pci_order(const DeviceConfig& gpu) {
  return (std::uint64_t{gpu.pci_domain} << 32) | (gpu.pci_bus << 8) | gpu.pci_device;
}

std::int64_t speed(const DeviceConfig& gpu) {
  return std::int64_t{gpu.multiprocessors} * gpu.clock_khz;
}

// The whole GPUs in the order in which CUDA numbers them.
std::vector<int> physical_in_order(const MachineState& machine, const char* order) {
  std::vector<int> gpus;
  for (int i = 0; i < machine.device_count; ++i) {
    if (machine.device[i].parent < 0) gpus.push_back(i);
  }
  const bool by_pci = order != nullptr && std::strcmp(order, "PCI_BUS_ID") == 0;
  std::stable_sort(gpus.begin(), gpus.end(), [&](int a, int b) {
    const DeviceConfig &x = machine.device[a], &y = machine.device[b];
    if (!by_pci && speed(x) != speed(y)) return speed(x) > speed(y);
    return pci_order(x) < pci_order(y);
  });
  return gpus;
}

// A GPU in MIG mode computes only through its instances; CUDA uses the first one.
int first_instance(const MachineState& machine, int gpu) {
  if (machine.device[gpu].mig_enabled == 0) return gpu;
  for (int i = 0; i < machine.device_count; ++i) {
    if (machine.device[i].parent == gpu) return i;
  }
  return -1;
}

int find_by_name(const MachineState& machine, std::string_view prefix) {
  int found = -1;
  for (int i = 0; i < machine.device_count; ++i) {
    if (std::string_view(machine.device[i].uuid).substr(0, prefix.size()) != prefix) continue;
    if (found >= 0) return -1;  // not unique
    found = i;
  }
  return found < 0 ? -1 : first_instance(machine, found);
}

// The device that one entry of the list names; -1 ends the list.
int find_entry(const MachineState& machine, const std::vector<int>& gpus, std::string_view entry) {
  if (entry.substr(0, 4) == "GPU-" || entry.substr(0, 4) == "MIG-") {
    return find_by_name(machine, entry);
  }
  if (entry.empty() || entry.find_first_not_of("0123456789") != std::string_view::npos) return -1;
  if (entry.size() > 4) return -1;
  const auto index = static_cast<std::size_t>(std::stoi(std::string(entry)));
  return index < gpus.size() ? first_instance(machine, gpus[index]) : -1;
}

// With MIG, a process sees exactly one instance and nothing else.
std::vector<int> keep_one_instance(const MachineState& machine, const std::vector<int>& devices) {
  for (const int device : devices) {
    if (machine.device[device].parent >= 0) return {device};
  }
  return devices;
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace

std::vector<int> visible_devices(const MachineState& machine, const char* visible,
                                 const char* order) {
  const std::vector<int> gpus = physical_in_order(machine, order);
  std::vector<int> seen;
  if (visible == nullptr) {
    for (const int gpu : gpus) {
      const int device = first_instance(machine, gpu);
      if (device >= 0) seen.push_back(device);
    }
    return keep_one_instance(machine, seen);
  }
  std::string_view rest = visible;
  while (!rest.empty()) {
    const auto comma = rest.find(',');
    const int device = find_entry(machine, gpus, trimmed(rest.substr(0, comma)));
    // The list ends at the first entry that names no device. A list that names a device twice is
    // empty.
    if (device < 0) break;
    if (std::find(seen.begin(), seen.end(), device) != seen.end()) return {};
    seen.push_back(device);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  return keep_one_instance(machine, seen);
}

}  // namespace gpurota::sim
