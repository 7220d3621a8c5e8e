// State and decisions of the device plugin on one node. State thread only; touches nothing but the
// book's file, and returns work for others: leases to make, to name, to end.
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
    std::map<Resource, std::string> names;    // whole names of the resources that are offered
    std::function<std::string()> make_token;  // 32 hex digits; empty: there is no randomness
    std::function<TimePoint()> now;
  };
  Node(Settings settings, AllocationBook book)
      : settings_(std::move(settings)), book_(std::move(book)) {}

  // As DeviceHandler.
  Result<ContainerAnswer> allocate(Resource resource, const std::vector<std::string>& ids);
  std::vector<std::string> prefer(Resource resource, const std::vector<std::string>& available,
                                  const std::vector<std::string>& must_include,
                                  std::size_t size) const;
  // The lease to order before the container starts.
  Result<LeaseOrder> pre_start(Resource resource, const std::vector<std::string>& ids);
  void on_lease(const std::string& allocation, const proto::Lease& lease);

  // As the daemon says now; an error: it is away.
  void on_daemon(Result<DaemonView> view);
  // As kubelet says now; it was asked at that time.
  void on_pods(const std::vector<PodDevices>& list, TimePoint asked);
  // Of whom it would be known that their containers are gone, if nobody had these tokens: to be
  // looked for.
  std::set<std::string> missing_tokens() const;
  void on_living(const std::set<std::string>& looked_for, const std::set<std::string>& living);
  // Leases of which the daemon is to be asked in which pod their processes are.
  std::vector<LeaseId> leases_of_unknown_pods() const;
  // Whether it is to be looked which pods have control groups, and those that have.
  bool wants_pod_groups() const;
  void on_pod_groups(const std::set<std::string>& uids);

  // Whether the daemon has ever been heard.
  bool knows_gpus() const { return static_cast<bool>(view_); }
  std::vector<Offered> offers(Resource resource) const;
  // Those that may be told of their leases; they point into what the daemon said last.
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
  std::set<LeaseId> named_;  // whose pod the daemon has been told
  // Of containers whose devices others have by now; the daemon shows them still.
  std::set<LeaseId> leaving_;
  std::vector<LeaseEnding> endings_;
  std::vector<LeaseName> names_;
};

}  // namespace gpurota::kube
