#include "kube/dra/claim_calls.h"

#include "base/log.h"
#include "kube/dra/claim_reader.h"
#include "kube/dra/claim_spec.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota::kube {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kClaimPatience{10000};
// Longer than fillers need to leave.
constexpr milliseconds kLeaseTime{15000};
constexpr std::size_t kMostWarned = 1024;
// Repeated at most this often, because each event is an object in the cluster's store.
constexpr std::chrono::minutes kSayAgain{10};

milliseconds left_until(ClaimHandler::Deadline deadline, milliseconds most) {
  const auto left =
      std::chrono::duration_cast<milliseconds>(deadline - std::chrono::steady_clock::now());
  return std::clamp(left, milliseconds(0), most);
}

tl::unexpected<Error> busy() {
  return fail(Code::kTimeout, "this claim is still being worked on for an earlier call");
}

}  // namespace

Result<ClaimCalls::Works> ClaimCalls::work_for(const ClaimId& claim, Deadline deadline) {
  using All = std::vector<DraNode::Work>;
  GPUROTA_ASSIGN_OR_RETURN(All known, parts_.questions.ask<All>([this, uid = claim.uid] {
    return parts_.node.find(uid);
  }));
  if (!known.empty()) return Works{std::move(known), false};
  GPUROTA_ASSIGN_OR_RETURN(const AllocatedClaim read,
                           read_claim(*parts_.api, claim, left_until(deadline, kClaimPatience)));
  GPUROTA_ASSIGN_OR_RETURN(
      All added, parts_.questions.ask<All>([this, read, was_refused = was_refused(claim.uid)] {
        return parts_.node.add(read, was_refused);
      }));
  return Works{std::move(added), true};
}

Result<Prepared> ClaimCalls::prepare(const ClaimId& claim, Deadline deadline) {
  const auto pass = parts_.locks.lock(claim.uid, deadline);
  if (!pass) return busy();
  const auto works = work_for(claim, deadline);
  if (!works) {
    warn(claim, "a claim cannot be prepared", works.error().message);
    return tl::unexpected(works.error());
  }
  for (const DraNode::Work& work : works->all) {
    auto leased = have_lease(claim, work, deadline);
    if (leased) continue;
    warn(claim, "a claim has to wait for its lease", leased.error().message);
    if (works->is_new) give_up(claim.uid, works->all);
    return tl::unexpected(std::move(leased).error().context("no lease for this claim yet"));
  }
  // Stored after its leases are made, because failing attempts repeat often. If this program ends
  // in between, its next run ends the leases, as no stored claim has their tokens.
  const auto kept = parts_.questions.ask<bool>([this, uid = claim.uid]() -> Result<bool> {
    GPUROTA_TRY(parts_.node.keep(uid));
    return true;
  });
  if (!kept) {
    warn(claim, "a claim cannot be prepared", kept.error().message);
    return tl::unexpected(kept.error());
  }
  forget_warning(claim.uid);
  Prepared prepared;
  for (const DraNode::Work& work : works->all) {
    GPUROTA_TRY(write_spec(parts_.cdi_dir, work.key, work.answer));
    PreparedLease& lease = prepared.emplace_back();
    lease.devices = work.devices;
    lease.cdi_devices = {spec_device(work.key)};
    for (const std::string& name : work.answer.cdi_devices) lease.cdi_devices.push_back(name);
  }
  return prepared;
}

// Removes the claim, so that the next call reads it anew. A lease that cannot be ended now is found
// by the next poll of the daemon.
void ClaimCalls::give_up(const std::string& uid, const std::vector<DraNode::Work>& works) {
  if (works.size() > 1) {
    for (const DraNode::Work& work : works) {
      (void)end_lease_of(parts_.daemon, work.order.allocation, "not all of its claim can be had");
    }
  }
  (void)forget(uid);
}

Result<void> ClaimCalls::have_lease(const ClaimId& claim, const DraNode::Work& work,
                                    Deadline deadline) {
  const milliseconds patience = left_until(deadline, kLeaseTime);
  if (patience.count() == 0) return fail(Code::kTimeout, "no time is left to ask for it");
  GPUROTA_ASSIGN_OR_RETURN(const proto::Lease lease,
                           make_lease(parts_.daemon, work.order, patience));
  const auto heard = parts_.questions.ask<bool>([this, key = work.key, id = lease.lease_id] {
    parts_.node.on_lease(key, id);
    parts_.changed();
    return Result<bool>(true);
  });
  if (!heard) return tl::unexpected(heard.error());
  log::info("a claim has its lease",
            {{"claim", full_name(claim)}, {"lease", to_string(lease.lease_id)}});
  return {};
}

Result<void> ClaimCalls::forget(const std::string& uid) {
  const auto forgotten = parts_.questions.ask<bool>([this, uid]() -> Result<bool> {
    GPUROTA_TRY(parts_.node.remove(uid));
    parts_.changed();
    return true;
  });
  if (!forgotten) return tl::unexpected(forgotten.error());
  return {};
}

Result<void> ClaimCalls::unprepare(const ClaimId& claim, Deadline deadline) {
  const auto pass = parts_.locks.lock(claim.uid, deadline);
  if (!pass) return busy();
  forget_warning(claim.uid);
  using Keys = std::vector<std::string>;
  GPUROTA_ASSIGN_OR_RETURN(const Keys keys, parts_.questions.ask<Keys>([this, uid = claim.uid] {
    return Result<Keys>(parts_.node.keys(uid));
  }));
  for (const std::string& key : keys) {
    auto ended = end_lease_of(parts_.daemon, allocation_of(key), "its claim is over");
    if (!ended) {
      return tl::unexpected(std::move(ended).error().context("cannot end the lease of this claim"));
    }
  }
  GPUROTA_TRY(remove_specs(parts_.cdi_dir, claim.uid));
  if (keys.empty()) return {};
  GPUROTA_TRY(forget(claim.uid));
  log::info("a claim is over", {{"claim", full_name(claim)}});
  return {};
}

void ClaimCalls::warn(const ClaimId& claim, const char* what, const std::string& why) {
  bool is_due = false;
  {
    const std::lock_guard lock(mutex_);
    // Claims that kubelet never asks about again would otherwise stay forever.
    if (warned_.size() >= kMostWarned) warned_.clear();
    Warned& before = warned_[claim.uid];
    if (before.why == why) return;
    before.why = why;
    const auto now = std::chrono::steady_clock::now();
    is_due = !before.said || now - *before.said >= kSayAgain;
    if (is_due) before.said = now;
  }
  log::warn(what, {{"claim", full_name(claim)}, {"error", why}});
  if (!is_due) return;
  (void)parts_.questions.ask<bool>([this, claim, why] {
    parts_.refused(claim, why);
    return Result<bool>(true);
  });
}

bool ClaimCalls::was_refused(const std::string& uid) {
  const std::lock_guard lock(mutex_);
  return warned_.contains(uid);
}

void ClaimCalls::forget_warning(const std::string& uid) {
  const std::lock_guard lock(mutex_);
  warned_.erase(uid);
}

void ClaimCalls::on_registration(const std::string& refusal) {
  (void)parts_.questions.ask<bool>([this, refusal] {
    parts_.registered(refusal);
    return Result<bool>(true);
  });
}

}  // namespace gpurota::kube
