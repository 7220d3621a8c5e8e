// The leases of this node's containers: read, made and ended through the daemon's control socket.
// Shared by the programs that offer GPUs to kubelet (the device plugin and the DRA driver). Every
// function blocks and uses its own connection: any thread but the state thread.
#pragma once

#include "client/locate.h"
#include "kube/container_answer.h"
#include "proto/methods.h"

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::kube {

struct DaemonView {
  ContainerNode node;
  std::vector<proto::Lease> pods;           // the leases of pods
  std::vector<proto::Finding> over_limit;   // of these leases, those over their limit
  std::map<LeaseId, std::string> pod_uids;  // of the leases asked for, if known
  Bytes host_memory;                        // for evicted memory
  DriverVersions driver;
};

// `host_root`: the folder of this machine's files ("" outside a container). `whose`: the leases
// whose processes' pods the daemon should report. kDenied if we are not an administrator for the
// daemon.
Result<DaemonView> read_daemon(const client::Location& location, const std::string& host_root,
                               const std::vector<LeaseId>& whose);

// The request for a lease.
struct LeaseOrder {
  std::string allocation;
  std::string token;
  proto::LeaseRequest request;
  std::optional<proto::Pod> pod;
  std::optional<std::string> pod_uid;  // as in AcquireForPod
};
// The existing lease, or a new one; waits at most `patience` for fillers to leave.
Result<proto::Lease> make_lease(const client::Location& location, const LeaseOrder& order,
                                std::chrono::milliseconds patience);
// A lease whose container kubelet has listed.
struct LeaseName {
  LeaseId lease;
  proto::Pod pod;
};
// Also succeeds if the lease no longer exists.
Result<void> name_lease(const client::Location& location, const LeaseName& name);
// A lease to end, and the reason.
struct LeaseEnding {
  LeaseId lease;
  std::string why;
};
// Also succeeds if there is no such lease.
Result<void> end_lease_of(const client::Location& location, const std::string& allocation,
                          const std::string& why);
Result<void> end_lease(const client::Location& location, LeaseId lease, const std::string& why);

}  // namespace gpurota::kube
