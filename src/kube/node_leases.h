// The leases of this node's containers, as the daemon has them: seen, made and ended through its
// control socket. Shared by whatever tells kubelet of GPUs (the device plugin; dynamic resources).
// Every function is a call that blocks, on a connection of its own: any thread but the state
// thread.
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
  std::vector<proto::Finding> over_limit;   // of these, those that hold more than they may
  std::map<LeaseId, std::string> pod_uids;  // of those that were asked for, if it is known
  Bytes host_memory;                        // for what is moved out
  DriverVersions driver;
};

// `host_root`: where this machine's files are ("" but in a container). `whose`: leases of which it
// is to be known in which pod their processes are. kDenied if the daemon does not take us for an
// administrator.
Result<DaemonView> read_daemon(const client::Location& location, const std::string& host_root,
                               const std::vector<LeaseId>& whose);

// The request for a lease.
struct LeaseOrder {
  std::string allocation;
  std::string token;
  proto::LeaseRequest request;
  std::optional<proto::Pod> pod;
};
// The lease that is there, or a new one; fillers have until then to leave.
Result<proto::Lease> make_lease(const client::Location& location, const LeaseOrder& order,
                                std::chrono::milliseconds patience);
// A lease whose container kubelet has told.
struct LeaseName {
  LeaseId lease;
  proto::Pod pod;
};
// A lease that is not there any more is no error.
Result<void> name_lease(const client::Location& location, const LeaseName& name);
// A lease that is to end, and why.
struct LeaseEnding {
  LeaseId lease;
  std::string why;
};
// A lease that is not there is no error.
Result<void> end_lease_of(const client::Location& location, const std::string& allocation,
                          const std::string& why);
Result<void> end_lease(const client::Location& location, LeaseId lease, const std::string& why);

}  // namespace gpurota::kube
