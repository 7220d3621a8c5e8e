// Puts the queue into the order of arrival or, if the site wants that, orders it by what users have
// had (docs/design/fair-share.md). Also prepares the requests for planning. State thread only;
// changes nothing.
#pragma once

#include "config/config.h"
#include "core/time.h"
#include "daemon/gpus/gpu_states.h"
#include "daemon/leases/lease_tables.h"
#include "daemon/users/users.h"
#include "lease/fair_share.h"
#include "lease/request_queue.h"
#include "ports/processes.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include <sys/types.h>

namespace gpurota::daemon {

// The GPU time that users have had, and their weights.
class FairShares {
 public:
  virtual ~FairShares() = default;
  // Nothing: the queue is in the order of arrival.
  virtual std::optional<lease::FairShare> share_of(uid_t uid) = 0;
};

class QueueOrder {
 public:
  // All must outlive the QueueOrder.
  struct Parts {
    const LeaseTables& tables;
    const GpuStates& states;
    ports::Processes& processes;
    const config::Config& config;
    std::function<WallTime()> wall_clock;
    FairShares& shares;
    const Users& users;
  };
  explicit QueueOrder(Parts parts) : parts_(std::move(parts)) {}

  void sort(std::vector<QueueEntry>& entries) const;
  // The place in the queue of a request that this user makes now.
  std::size_t place_of(uid_t newcomer) const;
  // The time after which the order may change although nothing has happened.
  std::optional<Duration> changes_after() const;
  // The requests as the planner needs them. A newcomer, which is not in the queue, is added at its
  // place.
  std::vector<lease::Request> requests(const AcquireRequest* newcomer = nullptr) const;

  std::optional<lease::FairShare> share_of(uid_t uid) const;
  bool is_overdue(const QueueEntry& entry) const;
  // The nearest request that is ahead of `entry` although it came later; null: there is none.
  const QueueEntry* passing(const QueueEntry& entry) const;

 private:
  lease::Claim claim_of(const QueueEntry& entry) const;
  lease::Request request_of(RequestId id, const AcquireRequest& asked, WallTime since) const;

  Parts parts_;
};

}  // namespace gpurota::daemon
