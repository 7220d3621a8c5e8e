#include "kube/dra/slice.h"

#include "kube/dra/claim.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace gpurota::kube {
namespace {

Bytes whole_units(Bytes amount, Bytes unit) {
  return Bytes(amount.count() - amount.count() % unit.count());
}

// The part of one GPU that claims have.
struct OfClaims {
  Bytes memory, turns;  // already counted by the daemon
  bool whole = false;   // of a claim, leased or not yet
  bool others = false;  // memory or turns
};

OfClaims of_claims(const GpuUuid& gpu, const std::vector<Held>& held) {
  OfClaims found;
  for (const Held& each : held) {
    if (each.gpu != gpu) continue;
    if (each.resource == Resource::kGpu) found.whole = true;
    if (each.resource != Resource::kGpu) found.others = true;
    if (!each.leased) continue;
    if (each.resource == Resource::kTurn) found.turns += each.memory;
    if (each.resource != Resource::kTurn) found.memory += each.memory;
  }
  return found;
}

std::vector<std::string> taints_of(const NodeGpu& gpu) {
  std::vector<std::string> taints;
  if (!gpu.works) taints.emplace_back("gpurota.dev/lost");
  if (gpu.works && !gpu.in_service) taints.emplace_back("gpurota.dev/drained");
  if (gpu.ecc_errors > 0) taints.emplace_back("gpurota.dev/ecc-errors");
  return taints;
}

// Also by the names that all drivers share, so that a claim can ask for a GPU and a network card
// that are close to each other
// (https://kubernetes.io/docs/reference/node/dra-standard-device-attributes/).
void add_place(const NodeGpu& gpu, std::map<std::string, Attribute>& attributes) {
  const std::string shared = "resource.kubernetes.io/";
  if (!gpu.pci.empty()) {
    attributes["pciBusID"] = gpu.pci;
    attributes[shared + "pciBusID"] = gpu.place.address;
  }
  if (!gpu.place.root.empty()) attributes[shared + "pcieRoot"] = gpu.place.root;
  if (gpu.place.numa) {
    attributes["numaNode"] = std::int64_t{*gpu.place.numa};
    attributes[shared + "numaNode"] = std::int64_t{*gpu.place.numa};
  }
  if (gpu.nvlink_group) attributes["nvlinkGroup"] = gpu.nvlink_group->value;
}

const char* type_of(Resource of) {
  return of == Resource::kTurn ? "turns" : of == Resource::kMemory ? "memory" : "whole";
}

SliceDevice common(const NodeGpu& gpu, Resource of, const DriverVersions& driver,
                   const SliceRules& rules) {
  SliceDevice device;
  device.name = device_name(gpu.uuid, of);
  device.unit = rules.unit;
  device.counter = device_name(gpu.uuid, Resource::kMemory);
  // The scheduler subtracts this once for a device, not once for each claim. So while a claim has
  // one of a GPU's devices, no claim gets a device of another kind there, unless `mixed` lets
  // memory and turns share the GPU.
  device.counted = std::max(whole_units(gpu.memory, rules.unit), rules.unit);
  if (rules.mixed && of != Resource::kGpu) device.counted = Bytes(device.counted.count() / 2);
  device.taints = taints_of(gpu);
  device.attributes = {{"type", std::string(type_of(of))}, {"uuid", gpu.uuid.value},
                       {"productName", gpu.model},         {"index", std::int64_t{gpu.index}},
                       {"mig", gpu.parent.has_value()},    {"healthy", gpu.works}};
  add_place(gpu, device.attributes);
  if (gpu.parent) device.attributes["parentUUID"] = gpu.parent->value;
  if (const std::string name = architecture_of(gpu.compute); !name.empty()) {
    device.attributes["architecture"] = name;
  }
  const std::pair<const char*, std::string> versions[] = {{"driverVersion", driver.driver},
                                                          {"cudaDriverVersion", driver.cuda},
                                                          {"cudaComputeCapability", gpu.compute}};
  for (const auto& [name, text] : versions) {
    const std::string version = semantic_version(text);
    if (!version.empty()) device.attributes[name] = Version{version};
  }
  return device;
}

bool is_whole(const NodeGpu& gpu, const OfClaims& claims) {
  return gpu.works && gpu.in_service && gpu.idle && !claims.whole && !claims.others;
}

SliceDevice for_whole(const NodeGpu& gpu, const OfClaims& claims, SliceDevice device) {
  device.is_shared = false;
  device.memory = device.usual = device.counted;
  device.attributes["available"] = device.attributes["whole"] = is_whole(gpu, claims);
  return device;
}

SliceDevice for_memory(const NodeGpu& gpu, const OfClaims& claims, SliceDevice device) {
  const bool serves = gpu.works && gpu.in_service;
  const Bytes left = serves ? whole_units(gpu.free, device.unit) : Bytes();
  device.memory = std::max(claims.memory + left, device.unit);
  device.usual = whole_units(device.memory, device.unit);
  device.attributes["available"] = serves && !claims.whole && left >= device.unit;
  device.attributes["whole"] = is_whole(gpu, claims);  // for classes of an earlier version
  return device;
}

// One lease has its turn in the GPU's memory while the others are in host memory, so together they
// can have both.
SliceDevice for_turns(const NodeGpu& gpu, const OfClaims& claims, Bytes host, SliceDevice device) {
  const bool serves = gpu.works && gpu.in_service;
  const Bytes one = serves ? whole_units(gpu.free_for_turns, device.unit) : Bytes();
  device.memory = std::max({one + host, claims.turns, device.unit});
  device.most = device.usual = std::max(one, device.unit);
  device.attributes["available"] = serves && !claims.whole && one >= device.unit;
  return device;
}

}  // namespace

std::vector<SliceDevice> slice_devices(const std::vector<NodeGpu>& gpus,
                                       const std::vector<Held>& held, const DriverVersions& driver,
                                       Bytes host_memory, const SliceRules& rules) {
  std::vector<SliceDevice> devices;
  if (gpus.empty()) return devices;
  const Bytes host = whole_units(Bytes(host_memory.count() / gpus.size()), rules.unit);
  for (const NodeGpu& gpu : gpus) {
    const OfClaims claims = of_claims(gpu.uuid, held);
    const auto device = [&](Resource of) { return common(gpu, of, driver, rules); };
    devices.push_back(for_whole(gpu, claims, device(Resource::kGpu)));
    devices.push_back(for_memory(gpu, claims, device(Resource::kMemory)));
    if (!gpu.takes_turns) continue;
    SliceDevice turns = for_turns(gpu, claims, host, device(Resource::kTurn));
    turns.attributes["hostMemory"] = fmt::format("{}Mi", host.count() >> 20);
    devices.push_back(std::move(turns));
  }
  return devices;
}

// The names that NVIDIA's own driver for dynamic resources uses.
std::string architecture_of(const std::string& compute) {
  constexpr std::pair<std::string_view, const char*> kNames[] = {
      {"12.", "Blackwell"},    {"10.", "Blackwell"}, {"9.", "Hopper"},
      {"8.9", "Ada Lovelace"}, {"8.", "Ampere"},     {"7.5", "Turing"},
      {"7.", "Volta"},         {"6.", "Pascal"},     {"5.", "Maxwell"}};
  for (const auto& [begin, name] : kNames) {
    if (compute.starts_with(begin)) return name;
  }
  return {};
}

std::string semantic_version(const std::string& text) {
  std::string version;
  int numbers = 0;
  for (std::size_t from = 0; from <= text.size() && numbers < 3; ++numbers) {
    const std::size_t to = std::min(text.find('.', from), text.size());
    std::string number = text.substr(from, to - from);
    if (number.empty() || number.find_first_not_of("0123456789") != std::string::npos) return {};
    number.erase(0, std::min(number.find_first_not_of('0'), number.size() - 1));
    version += (version.empty() ? "" : ".") + number;
    from = to + 1;
  }
  for (; numbers > 0 && numbers < 3; ++numbers) version += ".0";
  return version;
}

}  // namespace gpurota::kube
