#include "lease/limit_policy.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota::lease {
namespace {

std::string in_seconds(Duration time) {
  return fmt::format("{} s", std::chrono::duration_cast<std::chrono::seconds>(time).count());
}

// Why the lease must be ended now; empty: it need not.
std::string due(const LimitedLease& lease, std::optional<TimePoint> above_soft,
                std::optional<TimePoint> above_lowered, const LimitRules& rules, TimePoint now) {
  if (rules.stop_above_soft && above_soft && now - *above_soft >= rules.soft_grace) {
    return fmt::format("it held {} for {}, above its soft limit of {}",
                       to_string(lease.charged, *lease.soft_limit), in_seconds(now - *above_soft),
                       to_string(*lease.soft_limit, lease.charged));
  }
  if (rules.stop_above_lowered && above_lowered && now - *above_lowered >= rules.lowered_grace) {
    return fmt::format("it still holds {}, {} after its limit was lowered to {}",
                       to_string(lease.charged, lease.limit), in_seconds(now - *above_lowered),
                       to_string(lease.limit, lease.charged));
  }
  return {};
}

}  // namespace

void LimitPolicy::judge(const LimitedLease& lease, Seen& seen, const LimitRules& rules,
                        TimePoint now, std::vector<LimitAction>& actions) {
  if (!lease.soft_limit || lease.charged <= *lease.soft_limit) {
    seen.above_soft.reset();
  } else if (!seen.above_soft) {
    seen.above_soft = now;
    std::string message = fmt::format("holds {}, above its soft limit of {}",
                                      to_string(lease.charged, *lease.soft_limit),
                                      to_string(*lease.soft_limit, lease.charged));
    if (lease.gives_way) message += "; others go first until it is below";
    if (rules.stop_above_soft) message += "; it is ended in " + in_seconds(rules.soft_grace);
    actions.push_back({LimitAction::Kind::kWarn, lease.lease, std::move(message)});
  }
  // If the grants alone reach the limit, the limit was lowered after they were made, perhaps before
  // the daemon's start.
  const bool lowered = lease.limit < seen.limit || lease.granted >= lease.limit;
  seen.limit = lease.limit;
  if (lease.charged <= lease.limit) {
    seen.above_lowered.reset();
  } else if (lowered && !seen.above_lowered) {
    seen.above_lowered = now;
    std::string message = fmt::format("holds {}, its limit was lowered to {}",
                                      to_string(lease.charged), to_string(lease.limit));
    if (rules.stop_above_lowered) message += "; it is ended in " + in_seconds(rules.lowered_grace);
    actions.push_back({LimitAction::Kind::kWarn, lease.lease, std::move(message)});
  }
}

std::vector<LimitAction> LimitPolicy::decide(const GpuUuid& gpu,
                                             const std::vector<LimitedLease>& leases,
                                             const LimitRules& rules, TimePoint now) {
  std::vector<LimitAction> actions;
  const LimitedLease* first = nullptr;
  std::string reason;
  bool one_is_ending = false;
  for (const LimitedLease& lease : leases) {
    one_is_ending |= lease.ending;
    if (lease.ending) continue;
    Seen& seen = seen_[{lease.lease, gpu}];
    judge(lease, seen, rules, now, actions);
    std::string why = due(lease, seen.above_soft, seen.above_lowered, rules, now);
    if (why.empty()) continue;
    const bool before =
        !first || lease.priority < first->priority ||
        (lease.priority == first->priority && first->lease.value < lease.lease.value);
    if (!before) continue;
    first = &lease;
    reason = std::move(why);
  }
  if (first && !one_is_ending) {
    actions.push_back({LimitAction::Kind::kStop, first->lease, std::move(reason)});
  }
  return actions;
}

void LimitPolicy::forget(LeaseId lease) {
  std::erase_if(seen_, [&](const auto& entry) { return entry.first.first == lease; });
}

}  // namespace gpurota::lease
