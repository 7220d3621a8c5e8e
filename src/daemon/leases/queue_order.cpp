#include "daemon/leases/queue_order.h"

#include "daemon/leases/user_allowance.h"

#include <algorithm>

namespace gpurota::daemon {
namespace {

// How often the order is computed anew: the use of GPUs changes a user's place only then.
constexpr Duration kOrderPeriod = std::chrono::minutes(1);
// The number of a request that is not in the queue, but is ordered with those that are.
constexpr RequestId kNewcomer{UINT64_MAX};

}  // namespace

std::optional<lease::FairShare> QueueOrder::share_of(uid_t uid) const {
  return parts_.config.fair_share.enabled ? parts_.shares.share_of(uid) : std::nullopt;
}

bool QueueOrder::is_overdue(const QueueEntry& entry) const {
  return parts_.wall_clock() - entry.since >= parts_.config.fair_share.longest_wait;
}

lease::Claim QueueOrder::claim_of(const QueueEntry& entry) const {
  const auto share = share_of(entry.asked.uid);
  return {entry.id, share.value_or(lease::FairShare()), share && is_overdue(entry), entry.since};
}

// Where the site has no fair share, claims differ only in their times.
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

std::size_t QueueOrder::place_of(uid_t newcomer) const {
  const auto& entries = parts_.tables.requests;
  const auto share = share_of(newcomer);
  if (!share) return entries.size();
  const lease::Claim claim{kNewcomer, *share, false, WallTime::max()};
  const auto behind = std::find_if(entries.begin(), entries.end(), [&](const QueueEntry& entry) {
    return goes_before(claim, claim_of(entry));
  });
  return static_cast<std::size_t>(behind - entries.begin());
}

const QueueEntry* QueueOrder::passing(const QueueEntry& entry) const {
  const QueueEntry* nearest = nullptr;
  for (const QueueEntry& other : parts_.tables.requests) {
    if (other.id == entry.id) return nearest;
    if (other.id > entry.id) nearest = &other;
  }
  return nearest;
}

std::optional<Duration> QueueOrder::changes_after() const {
  return parts_.config.fair_share.enabled ? std::optional(kOrderPeriod) : std::nullopt;
}

lease::Request QueueOrder::request_of(RequestId id, const AcquireRequest& asked,
                                      WallTime since) const {
  lease::Request request;
  request.id = id;
  request.kind = asked.kind;
  request.user = parts_.processes.user_name(asked.uid);
  request.placement = asked.placement;
  request.placement.preferred = parts_.states.last_gpus(asked.uid);
  request.lasts = asked.lasts;
  request.owner = parts_.processes.account_of(asked.uid);
  request.uid = asked.uid;
  request.most_compute =
      most_compute(parts_.users.limits_of(asked.uid), asked.kind, asked.placement.compute.least);
  request.waited =
      std::max(std::chrono::milliseconds(0),
               std::chrono::floor<std::chrono::milliseconds>(parts_.wall_clock() - since));
  // A time limit that is not enforced is no promise to others.
  const bool enforced = parts_.config.expired_reservation != config::Expired::kKeep;
  if (asked.kind == LeaseKind::kReservation && !enforced) request.lasts.reset();
  if (!asked.lasts) request.unbooked_for = config::unbooked_for(parts_.config.bookings);
  return request;
}

std::vector<lease::Request> QueueOrder::requests(const AcquireRequest* newcomer) const {
  std::vector<lease::Request> requests;
  for (const QueueEntry& entry : parts_.tables.requests) {
    requests.push_back(request_of(entry.id, entry.asked, entry.since));
  }
  if (newcomer) {
    const auto place = requests.begin() + static_cast<std::ptrdiff_t>(place_of(newcomer->uid));
    requests.insert(place, request_of(kNewcomer, *newcomer, parts_.wall_clock()));
  }
  return requests;
}

}  // namespace gpurota::daemon
