#include "lease/gpu_timeline.h"

#include <algorithm>

namespace gpurota::lease {
namespace {

bool counts(const GpuTimeline::Use& use, GpuTimeline::Against against) {
  return (static_cast<unsigned>(use.source) & static_cast<unsigned>(against)) != 0;
}

}  // namespace

template <class Visit>
void GpuTimeline::for_each_moment(WallTime from, WallTime until, Against against,
                                  Visit visit) const {
  // The sums only grow where a use begins, so it is enough to look there, and at the beginning, where most is decided.
  for (std::size_t i = 0; i <= uses_.size(); ++i) {
    const WallTime at = i == 0 ? from : uses_[i - 1].from;
    if (at >= until || (i > 0 && at <= from)) continue;
    Sums sums;
    for (const Use& use : uses_) {
      if (!counts(use, against) || use.from > at || use.until <= at) continue;
      const Bytes bytes = use.share.bytes.value_or(Bytes());
      sums.whole |= !use.share.bytes;
      if (use.share.swap) {
        sums.swap = std::max(sums.swap, bytes);
      } else {
        sums.slices += bytes;
      }
    }
    if (!visit(sums)) return;
  }
}

std::optional<Bytes> GpuTimeline::taken(WallTime from, WallTime until, Against against) const {
  Bytes most;
  bool whole = false;
  for_each_moment(from, until, against, [&](const Sums& sums) {
    whole |= sums.whole;
    most = std::max(most, sums.slices + sums.swap);
    return !whole;
  });
  return whole ? std::nullopt : std::optional(most);
}

Bytes GpuTimeline::slices(WallTime from, WallTime until, Against against) const {
  Bytes most;
  for_each_moment(from, until, against, [&](const Sums& sums) {
    most = std::max(most, sums.slices);
    return true;
  });
  return most;
}

bool GpuTimeline::fits(const Share& share, WallTime from, WallTime until, Against against,
                       Bytes capacity) const {
  if (!share.bytes) {
    return std::none_of(uses_.begin(), uses_.end(), [&](const Use& use) {
      return counts(use, against) && use.from < until && use.until > from;
    });
  }
  bool fits = true;
  for_each_moment(from, until, against, [&](const Sums& sums) {
    const Bytes with = share.swap ? sums.slices + std::max(sums.swap, *share.bytes)
                                  : sums.slices + sums.swap + *share.bytes;
    fits = !sums.whole && with <= capacity;
    return fits;
  });
  return fits;
}

}  // namespace gpurota::lease
