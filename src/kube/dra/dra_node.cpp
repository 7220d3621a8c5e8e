#include "kube/dra/dra_node.h"

#include "kube/dra/claim_room.h"
#include "kube/pod_leases.h"

#include <map>
#include <set>

namespace gpurota::kube {

namespace {

UsedClaim used_claim(const Claim& claim) {
  const std::string pool = claim.devices.empty() ? "" : claim.devices.front().pool;
  return {claim.id, pool, claim.pod_uid};
}

}  // namespace

Result<DraNode::Work> DraNode::work_of(const Claim& claim) const {
  if (!view_)
    return fail(Code::kUnavailable, "gpurotad has not been heard yet: see whether it runs");
  Work work;
  GPUROTA_ASSIGN_OR_RETURN(
      work.answer,
      container_answer(claim.resource, gpus_of(claim), claim.token, settings_.giver, view_->node));
  work.key = key_of(claim);
  work.order = order_of(claim);
  work.devices = claim.devices;
  return work;
}

Result<std::vector<DraNode::Work>> DraNode::find(const std::string& uid) const {
  std::vector<Work> all;
  for (const Claim* claim : book_.leases_of(uid)) {
    GPUROTA_ASSIGN_OR_RETURN(Work work, work_of(*claim));
    all.push_back(std::move(work));
  }
  return all;
}

Result<std::vector<DraNode::Work>> DraNode::add(const AllocatedClaim& allocated, bool was_refused) {
  if (!view_)
    return fail(Code::kUnavailable, "gpurotad has not been heard yet: see whether it runs");
  GPUROTA_ASSIGN_OR_RETURN(std::vector<Claim> leases, leases_of(allocated, view_->node.gpus));
  GPUROTA_TRY(check_together(leases, view_->node.gpus));
  // A single lease needs no check: it is made or refused. If there are several, the first would be
  // made for nothing.
  if (was_refused && leases.size() > 1) GPUROTA_TRY(check_room(leases, view_->node.gpus));
  for (Claim& claim : leases) {
    claim.token = settings_.make_token();
    if (claim.token.empty()) return fail(Code::kInternal, "the kernel has no random numbers");
    // Make the answer first, so that nothing is stored that could not be answered.
    GPUROTA_TRY(work_of(claim));
  }
  GPUROTA_TRY(book_.add(std::move(leases)));
  return find(allocated.id.uid);
}

std::vector<std::string> DraNode::keys(const std::string& uid) const {
  std::vector<std::string> keys;
  for (const Claim* claim : book_.leases_of(uid)) keys.push_back(key_of(*claim));
  return keys;
}

void DraNode::on_lease(const std::string& key, LeaseId lease) {
  if (Claim* const claim = book_.find(key)) {
    // `first_lease` only: the daemon reports `lease` together with the free memory. Set earlier,
    // the memory would be counted twice until then.
    if (!claim->first_lease) claim->first_lease = lease;
  } else {
    endings_.push_back({lease, "its claim was given up"});
  }
}

Result<void> DraNode::remove(const std::string& uid) {
  std::multimap<LeaseId, Held> had;
  for (const Claim* claim : book_.leases_of(uid)) {
    if (!claim->lease || claim->is_gone) continue;
    for (const ClaimDevice& device : claim->devices) {
      had.emplace(*claim->lease, Held{claim->resource, device.gpu, device.memory, true});
    }
  }
  GPUROTA_TRY(book_.remove(uid));
  leaving_.merge(had);
  return {};
}

void DraNode::on_review(const std::string& uid, bool is_there) {
  for (auto& [key, claim] : book_.all()) {
    if (claim.id.uid == uid) claim.is_gone = !is_there;
  }
}

void DraNode::find_leaving() {
  std::set<LeaseId> shown;
  for (const proto::Lease& lease : view_->pods) shown.insert(lease.lease_id);
  std::erase_if(leaving_, [&](const auto& each) { return !shown.contains(each.first); });
}

void DraNode::on_daemon(Result<DaemonView> view) {
  if (!view_.hear(std::move(view), settings_.now())) return;
  find_leaving();
  std::map<std::string, const proto::Lease*> there;
  for (const proto::Lease& lease : view_->pods) {
    const auto key = find_key(lease.allocation.value_or(""));
    if (!key || lease.state == proto::LeaseState::kEnding) continue;
    there[*key] = &lease;
    // A used lease has a container, whatever was lost here.
    if (!book_.find(*key) && lease.processes == 0) {
      endings_.push_back({lease.lease_id, "no claim is known that it is for"});
    }
  }
  for (auto& [key, claim] : book_.all()) {
    const auto at = there.find(key);
    claim.lease = at == there.end() ? std::nullopt : std::optional(at->second->lease_id);
    if (!claim.lease && claim.first_lease) {
      orders_.push_back({used_claim(claim), order_of(claim)});
    }
    if (!claim.first_lease) claim.first_lease = claim.lease;
  }
}

std::vector<SliceDevice> DraNode::devices() const {
  if (!view_) return {};
  std::vector<Held> held;
  for (const auto& [lease, each] : leaving_) held.push_back(each);
  for (const auto& [key, claim] : book_.all()) {
    if (claim.is_gone) continue;
    for (const ClaimDevice& device : claim.devices) {
      held.push_back({claim.resource, device.gpu, device.memory, claim.lease.has_value()});
    }
  }
  return slice_devices(view_.gpus(settings_.now()), held, view_->driver, view_->host_memory,
                       settings_.rules);
}

std::vector<DeviceHealth> DraNode::health() const {
  if (!view_) return {};
  const TimePoint now = settings_.now();
  return device_health(view_.gpus(now), view_.is_away(now));
}

std::vector<UsedClaim> DraNode::claims() const {
  std::vector<UsedClaim> claims;
  if (!view_) return claims;
  std::set<LeaseId> used;
  for (const proto::Lease& lease : view_->pods) {
    if (lease.processes > 0) used.insert(lease.lease_id);
  }
  for (const auto& [key, claim] : book_.all()) {
    // The leases of one claim are adjacent.
    if (claims.empty() || claims.back().id.uid != claim.id.uid) claims.push_back(used_claim(claim));
    claims.back().is_used |= claim.lease && used.contains(*claim.lease);
  }
  return claims;
}

std::vector<SeenPod> DraNode::pods() const {
  std::vector<SeenPod> seen;
  if (!view_) return seen;
  const PodLeases leases(*view_);
  for (const auto& [key, claim] : book_.all()) {
    if (claim.pod.empty() || claim.pod_uid.empty()) continue;  // nobody would find its events
    SeenPod& found = seen.emplace_back();
    found.key = key;
    found.ref = {claim.id.space, claim.pod, claim.pod_uid};
    found.first_lease = claim.first_lease;
    leases.show(allocation_of(key), claim.lease, found);
  }
  return seen;
}

}  // namespace gpurota::kube
