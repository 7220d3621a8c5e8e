// The order of the queue: the order of coming, or by what users have had where the site wants that
// (docs/design/fair-share.md). Part of Queue; state thread only.
#pragma once

#include "config/config.h"
#include "core/time.h"
#include "lease/fair_share.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include <sys/types.h>

namespace gpurota::daemon {

struct QueueEntry;

// The shares that users have had.
class FairShares {
 public:
  virtual ~FairShares() = default;
  // Nothing: the queue is in the order of coming.
  virtual std::optional<lease::FairShare> share_of(uid_t uid) = 0;
};

class QueueOrder {
 public:
  // All outlive it.
  struct Parts {
    const config::Config& config;
    std::function<WallTime()> wall_clock;
    FairShares* shares = nullptr;  // null: the order is that of coming
  };
  explicit QueueOrder(Parts parts) : parts_(std::move(parts)) {}

  void sort(std::vector<QueueEntry>& entries) const;
  // The place of a request that this user makes now: that of the first request behind it.
  std::size_t place_of(uid_t newcomer, const std::vector<QueueEntry>& entries) const;
  // After how long the order may change though nothing has happened.
  std::optional<Duration> changes_after() const;

  std::optional<lease::FairShare> share_of(uid_t uid) const;
  bool is_overdue(const QueueEntry& entry) const;
  // The nearest request ahead of `entry` that came later; null: there is none.
  static const QueueEntry* passing(const QueueEntry& entry, const std::vector<QueueEntry>& entries);

 private:
  lease::Claim claim_of(const QueueEntry& entry) const;

  Parts parts_;
};

}  // namespace gpurota::daemon
