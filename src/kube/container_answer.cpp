#include "kube/container_answer.h"

#include "abi/env.h"
#include "base/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gpurota::kube {
namespace {

using containers::Giver;
using containers::Seen;

const NodeGpu* find(const ContainerNode& node, const GpuUuid& gpu) {
  const auto at = std::find_if(node.gpus.begin(), node.gpus.end(),
                               [&](const NodeGpu& each) { return each.uuid == gpu; });
  return at == node.gpus.end() ? nullptr : &*at;
}

void add_new(std::vector<std::string>& to, const std::vector<std::string>& from) {
  for (const std::string& each : from) {
    if (std::find(to.begin(), to.end(), each) == to.end()) to.push_back(each);
  }
}

containers::Host host_of(const ContainerNode& node, const std::vector<GpuUuid>& gpus) {
  containers::Host host;
  for (const GpuUuid& gpu : gpus) {
    const auto at = node.hosts.find(gpu);
    if (at == node.hosts.end()) continue;
    add_new(host.driver.devices, at->second.driver.devices);
    add_new(host.driver.programs, at->second.driver.programs);
    add_new(host.driver.missing, at->second.driver.missing);
    host.preload_file = at->second.preload_file;
  }
  return host;
}

// The daemon's answer to GetEnvironment for the container, without the number of a lease, which
// does not exist yet.
proto::GetEnvironment::Reply environment_of(Resource resource, const proto::Lease& lease,
                                            const std::string& visible, const std::string& token,
                                            const ContainerNode& node) {
  proto::GetEnvironment::Reply reply;
  reply.lease = lease;
  reply.environment = {{"CUDA_VISIBLE_DEVICES", visible},
                       {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"},
                       {GPUROTA_ENV_LEASE, "pod"},
                       {GPUROTA_ENV_SOCKET, node.socket_folder + "/" GPUROTA_TENANT_SOCKET_NAME},
                       {GPUROTA_ENV_TOKEN, token}};
  if (resource == Resource::kGpu) reply.environment.push_back({GPUROTA_ENV_WHOLE, "1"});
  reply.preload = node.library;
  return reply;
}

Giver giver_of(GpuGiver giver) {
  switch (giver) {
    case GpuGiver::kFiles:
      return Giver::kFiles;
    case GpuGiver::kRuntime:
      return Giver::kToolkit;
    case GpuGiver::kCdi:
      break;
  }
  return Giver::kDescription;
}

}  // namespace

Result<GpuGiver> parse_gpu_giver(std::string_view word) {
  if (word == "files") return GpuGiver::kFiles;
  if (word == "runtime") return GpuGiver::kRuntime;
  if (word == "cdi") return GpuGiver::kCdi;
  return fail(Code::kInvalid, fmt::format("'{}' gives no GPUs: write files, runtime or cdi",
                                          display_text(word, 60)));
}

Result<ContainerAnswer> container_answer(Resource resource, const std::vector<GpuUuid>& gpus,
                                         const std::string& token, GpuGiver giver,
                                         const ContainerNode& node) {
  std::vector<const NodeGpu*> known;
  for (const GpuUuid& gpu : gpus) {
    const NodeGpu* const found = find(node, gpu);
    if (!found) {
      return fail(Code::kUnavailable,
                  fmt::format("this node has no GPU {} now", display_text(gpu.value, 60)));
    }
    known.push_back(found);
  }
  // The container numbers the GPUs in the order of the driver.
  std::sort(known.begin(), known.end(),
            [](const NodeGpu* a, const NodeGpu* b) { return a->index < b->index; });
  proto::Lease lease;
  std::vector<std::string> visible;
  for (const NodeGpu* gpu : known) {
    lease.gpus.push_back({.index = gpu->index, .label = gpu->label, .uuid = gpu->uuid});
    visible.push_back(containers::is_instance(gpu->uuid) ? gpu->uuid.value
                                                         : std::to_string(gpu->index));
  }
  const containers::Host host = host_of(node, gpus);
  // No device file at all: a simulated machine, whose GPUs exist in every container.
  const bool simulated = host.driver.devices.empty() && host.driver.missing.empty();
  if (giver == GpuGiver::kFiles && !host.driver.missing.empty()) {
    return fail(Code::kUnavailable,
                fmt::format("the device files of GPU {} are not known: start the "
                            "plugin with --gpus-by runtime or cdi",
                            host.driver.missing.front()));
  }
  const containers::Parts parts = containers::make_parts(
      environment_of(resource, lease, fmt::format("{}", fmt::join(visible, ",")), token, node),
      simulated ? Giver::kNobody : giver_of(giver), simulated ? Seen::kAsOutside : Seen::kFromZero,
      host);
  ContainerAnswer answer;
  for (const proto::Variable& v : parts.variables) answer.variables[v.name] = v.value;
  answer.variables[GPUROTA_ENV_TOKEN] = parts.token;
  answer.mounts = parts.mounts;
  if (giver == GpuGiver::kCdi && !simulated) {
    answer.cdi_devices = parts.devices;
  } else {
    answer.device_files = parts.devices;
  }
  if (!parts.gpu_ids.empty()) {
    answer.variables["NVIDIA_VISIBLE_DEVICES"] = fmt::format("{}", fmt::join(parts.gpu_ids, ","));
    answer.variables["NVIDIA_DRIVER_CAPABILITIES"] = "compute,utility";
  }
  return answer;
}

}  // namespace gpurota::kube
