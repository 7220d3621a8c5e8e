#include "kube/pod_leases.h"

namespace gpurota::kube {

PodLeases::PodLeases(const DaemonView& view) : over_limit_(view.over_limit) {
  for (const proto::Lease& lease : view.pods) {
    if (lease.allocation) leases_.emplace(*lease.allocation, &lease);
  }
}

void PodLeases::show(const std::string& allocation, std::optional<LeaseId> lease,
                     SeenPod& pod) const {
  for (auto [at, end] = leases_.equal_range(allocation); at != end; ++at) {
    if (lease == at->second->lease_id) pod.lease = at->second;
    if (at->second->state == proto::LeaseState::kEnding) pod.is_ending = true;
  }
  for (const proto::Finding& finding : over_limit_) {
    if (lease == finding.lease_id) pod.over_limit = &finding;
  }
}

}  // namespace gpurota::kube
