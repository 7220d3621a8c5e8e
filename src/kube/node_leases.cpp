#include "kube/node_leases.h"

#include "abi/env.h"
#include "base/text.h"
#include "kube/machine.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota::kube {
namespace {

NodeGpu gpu_of(const proto::Gpu& shown, const std::string& host_root) {
  NodeGpu gpu;
  gpu.uuid = shown.uuid;
  gpu.label = shown.label.value_or(std::to_string(shown.index));
  gpu.index = shown.index;
  gpu.place = read_pci_place(shown.pci, host_root);
  gpu.memory = shown.memory_bytes;
  gpu.free = shown.available_bytes.value_or(Bytes());
  gpu.free_for_turns = shown.swap_available_bytes.value_or(Bytes());
  gpu.takes_turns = !shown.unified.value_or(false);
  gpu.idle = shown.state == proto::GpuState::kAvailable;
  gpu.works = shown.state != proto::GpuState::kError;
  gpu.in_service = shown.state != proto::GpuState::kDraining;
  gpu.model = shown.name;
  gpu.pci = shown.pci;
  gpu.parent = shown.parent;
  gpu.nvlink_group = shown.nvlink_group;
  gpu.compute = shown.compute_capability.value_or("");
  gpu.ecc_errors = shown.ecc_uncorrected.value_or(0);
  return gpu;
}

// The UID of the pod of the lease's processes; empty: the daemon does not know. The daemon reads
// control groups, which a container cannot see.
std::string pod_of(client::Connection& daemon, LeaseId lease) {
  proto::ListProcesses call;
  call.lease_id = lease;
  const auto listed = daemon.call(call);
  if (!listed) return {};
  for (const proto::Process& process : listed->processes) {
    if (process.container && process.container->pod) return *process.container->pod;
  }
  return {};
}

}  // namespace

Result<DaemonView> read_daemon(const client::Location& location, const std::string& host_root,
                               const std::vector<LeaseId>& whose) {
  GPUROTA_ASSIGN_OR_RETURN(client::Connection daemon, client::connect(location));
  GPUROTA_ASSIGN_OR_RETURN(const proto::GetInfo::Reply info, daemon.call(proto::GetInfo{}));
  if (!info.administrator.value_or(false)) {
    return fail(
        Code::kDenied,
        fmt::format("the gpurotad at {} does not take this user for an administrator, so no "
                    "container can have a lease: run the plugin as root",
                    location.socket));
  }
  if (!info.library) {
    return fail(Code::kUnavailable,
                "libgpurota.so is not installed, so no limit can be enforced: "
                "see gpurota doctor");
  }
  GPUROTA_ASSIGN_OR_RETURN(const proto::Status::Reply status, daemon.call(proto::Status{}));
  GPUROTA_ASSIGN_OR_RETURN(const proto::ListTurns::Reply turns, daemon.call(proto::ListTurns{}));
  DaemonView view;
  view.host_memory = turns.host_budget_bytes;
  view.driver = {info.driver_version.value_or(""), info.cuda_version.value_or("")};
  view.node.library = *info.library;
  const std::string& socket = info.tenant_socket;
  view.node.socket_folder = socket.substr(0, socket.rfind('/') + 1) + GPUROTA_CONTAINER_FOLDER;
  for (const proto::Gpu& gpu : status.gpus) {
    if (gpu.state == proto::GpuState::kSplit) continue;  // its MIG instances are listed instead
    view.node.gpus.push_back(gpu_of(gpu, host_root));
    view.node.hosts[gpu.uuid] =
        containers::read_host({gpu.uuid}, view.node.socket_folder, host_root);
  }
  for (const proto::Lease& lease : status.leases) {
    if (lease.kind == proto::LeaseKind::kPod) view.pods.push_back(lease);
  }
  for (const proto::Finding& finding : status.findings) {
    if (finding.kind != proto::FindingKind::kOverLimit) continue;
    const bool is_pods =
        std::any_of(view.pods.begin(), view.pods.end(),
                    [&](const proto::Lease& lease) { return finding.lease_id == lease.lease_id; });
    if (is_pods) view.over_limit.push_back(finding);
  }
  for (const proto::Lease& lease : view.pods) {
    const bool is_asked = std::find(whose.begin(), whose.end(), lease.lease_id) != whose.end();
    if (!is_asked || lease.processes == 0) continue;
    const std::string uid = pod_of(daemon, lease.lease_id);
    if (!uid.empty()) view.pod_uids[lease.lease_id] = uid;
  }
  return view;
}

Result<proto::Lease> make_lease(const client::Location& location, const LeaseOrder& order,
                                std::chrono::milliseconds patience) {
  GPUROTA_ASSIGN_OR_RETURN(client::Connection daemon, client::connect(location));
  GPUROTA_ASSIGN_OR_RETURN(
      proto::AcquireForPod::Reply made,
      daemon.call(proto::AcquireForPod{order.allocation, order.token, order.request, order.pod,
                                       order.pod_uid},
                  patience));
  return std::move(made.lease);
}

Result<void> name_lease(const client::Location& location, const LeaseName& name) {
  GPUROTA_ASSIGN_OR_RETURN(client::Connection daemon, client::connect(location));
  proto::Update call;
  call.lease_id = name.lease;
  call.pod = name.pod;
  const auto named = daemon.call(call);
  const bool gone =
      !named && (named.error().code == Code::kNotFound || named.error().code == Code::kGone);
  if (!named && !gone) return tl::unexpected(named.error());
  return {};
}

namespace {

Result<void> release(client::Connection& daemon, LeaseId lease, const std::string& why) {
  proto::Release call;
  call.lease_id = lease;
  call.reason = why;
  const auto ended = daemon.call(call);
  if (!ended && ended.error().code != Code::kNotFound) return tl::unexpected(ended.error());
  return {};
}

}  // namespace

Result<void> end_lease_of(const client::Location& location, const std::string& allocation,
                          const std::string& why) {
  GPUROTA_ASSIGN_OR_RETURN(client::Connection daemon, client::connect(location));
  GPUROTA_ASSIGN_OR_RETURN(const proto::Status::Reply status, daemon.call(proto::Status{}));
  for (const proto::Lease& lease : status.leases) {
    const bool its = lease.kind == proto::LeaseKind::kPod && lease.allocation == allocation;
    if (!its || lease.state == proto::LeaseState::kEnding) continue;
    GPUROTA_TRY(release(daemon, lease.lease_id, why));
  }
  return {};
}

Result<void> end_lease(const client::Location& location, LeaseId lease, const std::string& why) {
  GPUROTA_ASSIGN_OR_RETURN(client::Connection daemon, client::connect(location));
  return release(daemon, lease, why);
}

}  // namespace gpurota::kube
