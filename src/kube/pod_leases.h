// The leases of pods as the daemon shows them, found by what they were made for, so that their pods
// can be told of them (api/pod_events.h). Pure.
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
  // `view` outlives it and what it shows.
  explicit PodLeases(const DaemonView& view);

  // `lease`: the one that the allocation has now, if any.
  void show(const std::string& allocation, std::optional<LeaseId> lease, SeenPod& pod) const;

 private:
  std::multimap<std::string, const proto::Lease*>
      leases_;  // one that ends beside the next, perhaps
  const std::vector<proto::Finding>& over_limit_;
};

}  // namespace gpurota::kube
