#include "daemon/leases/queue_order.h"

#include "daemon/leases/lease_tables.h"

#include <algorithm>

namespace gpurota::daemon {
namespace {

// How often the order is computed anew: the use of GPUs changes a user's place only then.
constexpr Duration kOrderPeriod = std::chrono::minutes(1);

}  // namespace

std::optional<lease::FairShare> QueueOrder::share_of(uid_t uid) const {
  return parts_.shares && parts_.config.fair_share.enabled ? parts_.shares->share_of(uid)
                                                           : std::nullopt;
}

bool QueueOrder::is_overdue(const QueueEntry& entry) const {
  return parts_.wall_clock() - entry.since >= parts_.config.fair_share.longest_wait;
}

lease::Claim QueueOrder::claim_of(const QueueEntry& entry) const {
  const auto share = share_of(entry.asked.uid);
  return {entry.id, share.value_or(lease::FairShare()), share && is_overdue(entry), entry.since};
}

// Without shares claims differ in their times only.
void QueueOrder::sort(std::vector<QueueEntry>& entries) const {
  std::vector<std::pair<lease::Claim, std::size_t>> order;
  for (const QueueEntry& entry : entries) order.emplace_back(claim_of(entry), order.size());
  const auto before = [](const auto& a, const auto& b) { return goes_before(a.first, b.first); };
  if (std::is_sorted(order.begin(), order.end(), before)) return;
  std::sort(order.begin(), order.end(), before);
  std::vector<QueueEntry> sorted;
  for (const auto& [claim, at] : order) sorted.push_back(std::move(entries[at]));
  entries = std::move(sorted);
}

std::size_t QueueOrder::place_of(uid_t newcomer, const std::vector<QueueEntry>& entries) const {
  const auto share = share_of(newcomer);
  if (!share) return entries.size();
  const lease::Claim claim{RequestId{UINT64_MAX}, *share, false, WallTime::max()};
  const auto behind = std::find_if(entries.begin(), entries.end(), [&](const QueueEntry& entry) {
    return goes_before(claim, claim_of(entry));
  });
  return static_cast<std::size_t>(behind - entries.begin());
}

const QueueEntry* QueueOrder::passing(const QueueEntry& entry,
                                      const std::vector<QueueEntry>& entries) {
  const QueueEntry* nearest = nullptr;
  for (const QueueEntry& other : entries) {
    if (other.id == entry.id) return nearest;
    if (other.id > entry.id) nearest = &other;
  }
  return nearest;
}

std::optional<Duration> QueueOrder::changes_after() const {
  return parts_.shares && parts_.config.fair_share.enabled ? std::optional(kOrderPeriod)
                                                           : std::nullopt;
}

}  // namespace gpurota::daemon
