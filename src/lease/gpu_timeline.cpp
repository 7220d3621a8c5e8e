#include "lease/gpu_timeline.h"

#include <algorithm>

namespace gpurota::lease {
namespace {

bool counts(const GpuTimeline::Use& use, GpuTimeline::Against against) {
  switch (against) {
    case GpuTimeline::Against::kAll:
      return true;
    case GpuTimeline::Against::kAllButFillers:
      return use.source != GpuTimeline::Source::kFiller;
    case GpuTimeline::Against::kAllButPlans:
      return use.source != GpuTimeline::Source::kPlan;
  }
  return true;
}

}  // namespace

std::optional<Bytes> GpuTimeline::taken(WallTime from, WallTime until, Against against) const {
  Bytes most;
  // The sum only grows where a use begins, so it is enough to look there.
  for (std::size_t i = 0; i <= uses_.size(); ++i) {
    const WallTime at = i == uses_.size() ? from : std::max(uses_[i].from, from);
    if (at >= until) continue;
    Bytes sum;
    for (const Use& use : uses_) {
      if (!counts(use, against) || use.from > at || use.until <= at) continue;
      if (!use.bytes) return std::nullopt;
      sum += *use.bytes;
    }
    most = std::max(most, sum);
  }
  return most;
}

bool GpuTimeline::fits(std::optional<Bytes> bytes, WallTime from, WallTime until, Against against,
                       Bytes capacity) const {
  if (!bytes) {
    return std::none_of(uses_.begin(), uses_.end(), [&](const Use& use) {
      return counts(use, against) && use.from < until && use.until > from;
    });
  }
  const auto used = taken(from, until, against);
  return used && *used + *bytes <= capacity;
}

WallTime GpuTimeline::free_from(std::optional<Bytes> bytes, WallTime now, Against against,
                                Bytes capacity) const {
  WallTime best = kNever;
  if (fits(bytes, now, kNever, against, capacity)) return now;
  for (const Use& use : uses_) {
    if (use.until <= now || use.until >= best) continue;
    if (fits(bytes, use.until, kNever, against, capacity)) best = use.until;
  }
  return best;
}

}  // namespace gpurota::lease
