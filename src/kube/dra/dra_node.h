// State and decisions of the DRA driver on one node. State thread only. Touches only the book's
// file, and returns work for others: leases to make and to end, devices to publish.
//
//   Prepare ──► a claim: devices, a token ──► its lease (by the thread that asked) ──► stored
//     ──► its spec (by the thread that asked) ──► kubelet
//   the daemon no longer has the lease (somebody released it)
//     ──► it is ordered again, as nobody else will ask for it, if the API server has the
//         claim still
//   Unprepare ──► the lease ends (by the thread that asked) ──► the claim is removed
#pragma once

#include "kube/api/pod_events.h"
#include "kube/dra/claim_book.h"
#include "kube/dra/claim_review.h"
#include "kube/dra/health.h"
#include "kube/dra/slice.h"
#include "kube/seen_daemon.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpurota::kube {

class DraNode {
 public:
  struct Settings {
    GpuGiver giver = GpuGiver::kFiles;
    SliceRules rules;
    std::function<std::string()> make_token;  // 32 hex digits; empty: no random numbers
    std::function<TimePoint()> now;
  };
  DraNode(Settings settings, ClaimBook book)
      : settings_(std::move(settings)), book_(std::move(book)) {}

  // The work that prepares one lease of a claim.
  struct Work {
    std::string key;
    LeaseOrder order;
    ContainerAnswer answer;
    std::vector<ClaimDevice> devices;
  };
  // Empty: the claim is unknown and must be read.
  Result<std::vector<Work>> find(const std::string& uid) const;
  // `was_refused`: an earlier call for this claim failed to get its leases. If the claim has
  // several, none is then requested until there is room for all.
  Result<std::vector<Work>> add(const AllocatedClaim& allocated, bool was_refused = false);
  // Called when the claim has all of its leases. Stored on return.
  Result<void> keep(const std::string& uid) { return book_.keep(uid); }
  // The keys of the claim's leases; empty if the claim is unknown.
  std::vector<std::string> keys(const std::string& uid) const;
  bool has(const std::string& key) { return book_.find(key) != nullptr; }
  void on_lease(const std::string& key, LeaseId lease);
  Result<void> remove(const std::string& uid);
  // Takes the API server's answer. The scheduler no longer counts a claim that is gone there, so
  // devices() leaves it out of the capacity, too.
  void on_review(const std::string& uid, bool is_there);

  // Takes the daemon's view; an error means that the daemon is away.
  void on_daemon(Result<DaemonView> view);
  bool knows_gpus() const { return static_cast<bool>(view_); }
  // The devices to publish; none while no GPU is known.
  std::vector<SliceDevice> devices() const;
  // The health of these devices.
  std::vector<DeviceHealth> health() const;

  // The pods that may get events, each with its claim; valid until the next on_daemon().
  std::vector<SeenPod> pods() const;

  // All claims, each once.
  std::vector<UsedClaim> claims() const;

  // Leases to end, each once.
  std::vector<LeaseEnding> take_endings() { return std::exchange(endings_, {}); }
  // A lease that a prepared claim has lost.
  struct LostLease {
    UsedClaim claim;
    LeaseOrder order;
  };
  std::vector<LostLease> take_orders() { return std::exchange(orders_, {}); }

 private:
  Result<Work> work_of(const Claim& claim) const;
  void find_leaving();

  Settings settings_;
  ClaimBook book_;
  SeenDaemon view_;
  // Devices of ended claims, until the daemon reports them free: until then the published capacity
  // still contains them.
  std::multimap<LeaseId, Held> leaving_;
  std::vector<LeaseEnding> endings_;
  std::vector<LostLease> orders_;
};

}  // namespace gpurota::kube
