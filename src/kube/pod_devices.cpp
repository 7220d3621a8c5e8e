#include "kube/pod_devices.h"

#include "kube/proto/pod_resources.grpc.pb.h"
#include "kube/unix_server.h"

#include <fmt/format.h>

#include <map>

#include <grpcpp/grpcpp.h>

namespace gpurota::kube {
namespace {

// Kubelet lists the devices of a container in several pieces, one for each NUMA node.
void add(const std::string& space, const std::string& pod, const v1::ContainerResources& container,
         std::vector<PodDevices>& list) {
  std::map<std::string, std::set<std::string>> devices;
  for (const v1::ContainerDevices& some : container.devices()) {
    devices[some.resource_name()].insert(some.device_ids().begin(), some.device_ids().end());
  }
  for (auto& [resource, ids] : devices) {
    list.push_back({proto::Pod{space, pod, container.name()}, resource, std::move(ids)});
  }
}

}  // namespace

Result<std::vector<PodDevices>> read_pod_devices(const std::string& socket,
                                                 std::chrono::milliseconds patience) {
  const auto lister = v1::PodResourcesLister::NewStub(connect_to(socket));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + patience);
  v1::ListPodResourcesResponse answer;
  const grpc::Status status = lister->List(&context, {}, &answer);
  if (!status.ok()) {
    return fail(Code::kUnavailable, fmt::format("kubelet does not list its pods at {}: {}", socket,
                                                status.error_message()));
  }
  std::vector<PodDevices> list;
  for (const v1::PodResources& pod : answer.pod_resources()) {
    for (const v1::ContainerResources& container : pod.containers()) {
      add(pod.namespace_(), pod.name(), container, list);
    }
  }
  return list;
}

}  // namespace gpurota::kube
