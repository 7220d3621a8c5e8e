// State and decisions of the device plugin on one node. State thread only. Touches only the book's
// file, and returns work for others: leases to make, to name, to end.
//
//   kubelet asks (Allocate)
//     ──► an allocation: devices, a token, stored ──► the answer, from memory
//   kubelet starts the container (PreStartContainer)
//     ──► a lease order, carried out by the thread that asked ──► the lease, or why there is none
//   kubelet no longer lists the container, and no process has the token
//     ──► the lease ends; the allocation stays until its devices are given anew
//   kubelet lists a container whose pod has no control group any more (older versions list pods
//   that have ended)
//     ──► the same
#pragma once

#include "kube/allocation_book.h"
#include "kube/api/pod_events.h"
#include "kube/container_answer.h"
#include "kube/node_leases.h"
#include "kube/offer.h"
#include "kube/pod_devices.h"
#include "kube/seen_daemon.h"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gpurota::kube {

class Node {
 public:
  struct Settings {
    Rules rules;
    GpuGiver giver = GpuGiver::kFiles;
    std::map<Resource, std::string> names;    // full names of the resources offered
    std::function<std::string()> make_token;  // 32 hex digits; empty: no random numbers
    std::function<TimePoint()> now;
  };
  Node(Settings settings, AllocationBook book)
      : settings_(std::move(settings)), book_(std::move(book)) {}

  // Like DeviceHandler::allocate.
  Result<ContainerAnswer> allocate(Resource resource, const std::vector<std::string>& ids);
  std::vector<std::string> prefer(Resource resource, const std::vector<std::string>& available,
                                  const std::vector<std::string>& must_include,
                                  std::size_t size) const;
  // The lease to request before the container starts.
  Result<LeaseOrder> pre_start(Resource resource, const std::vector<std::string>& ids);
  void on_lease(const std::string& allocation, const proto::Lease& lease);

  // Takes the daemon's view; an error means that the daemon is away.
  void on_daemon(Result<DaemonView> view);
  // Takes kubelet's list; `asked` is when the list was requested.
  void on_pods(const std::vector<PodDevices>& list, TimePoint asked);
  // Tokens to look for in processes: a container whose token no process has is gone.
  std::set<std::string> missing_tokens() const;
  void on_living(const std::set<std::string>& looked_for, const std::set<std::string>& living);
  // Leases for which the daemon should report the pod of their processes.
  std::vector<LeaseId> leases_of_unknown_pods() const;
  // Whether on_pod_groups() needs the pods that have control groups.
  bool wants_pod_groups() const;
  void on_pod_groups(const std::set<std::string>& uids);

  // Whether the daemon has ever answered.
  bool knows_gpus() const { return static_cast<bool>(view_); }
  std::vector<Offered> offers(Resource resource) const;
  // The pods that may get events about their leases; valid until the next on_daemon().
  std::vector<SeenPod> pods() const;

  // Leases to end and to name, each once.
  std::vector<LeaseEnding> take_endings() { return std::exchange(endings_, {}); }
  std::vector<LeaseName> take_names() { return std::exchange(names_, {}); }

 private:
  std::vector<Taken> taken() const;
  void drop(const Allocation& allocation);
  bool may_have_ended(const Allocation& allocation) const;
  void end(Allocation& allocation, const std::string& why);
  void find_leases();
  void identify(Allocation& allocation);
  LeaseOrder order_of(const Allocation& allocation, proto::LeaseRequest request) const;

  Settings settings_;
  AllocationBook book_;
  SeenDaemon view_;
  std::set<LeaseId> named_;  // whose pod the daemon knows
  // Leases of containers whose devices have been given to others; the daemon still shows them.
  std::set<LeaseId> leaving_;
  std::vector<LeaseEnding> endings_;
  std::vector<LeaseName> names_;
};

}  // namespace gpurota::kube
