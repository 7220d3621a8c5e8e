// Finds the leases of pods in the daemon's view by their allocations, for events about them
// (api/pod_events.h). Pure.
#pragma once

#include "kube/api/pod_events.h"
#include "kube/node_leases.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::kube {

class PodLeases {
 public:
  // `view` must outlive this object and everything shown.
  explicit PodLeases(const DaemonView& view);

  // `lease`: the current lease of the allocation, if any.
  void show(const std::string& allocation, std::optional<LeaseId> lease, SeenPod& pod) const;

 private:
  std::multimap<std::string, const proto::Lease*>
      leases_;  // may include an ending one beside its successor
  const std::vector<proto::Finding>& over_limit_;
};

}  // namespace gpurota::kube
