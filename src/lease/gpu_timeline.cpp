#include "lease/gpu_timeline.h"

#include "core/compute_share.h"

#include <algorithm>

namespace gpurota::lease {
namespace {

bool counts(const GpuTimeline::Use& use, GpuTimeline::Against against) {
  return (static_cast<unsigned>(use.source) & static_cast<unsigned>(against)) != 0;
}

}  // namespace

void GpuTimeline::Sums::add(const Share& share) {
  const Bytes bytes = share.bytes.value_or(Bytes());
  whole |= !share.bytes;
  compute += share.compute;
  if (share.uid == uid) of_user += share.compute;
  if (share.swap) {
    swap = std::max(swap, bytes);
  } else {
    slices += bytes;
  }
}

bool GpuTimeline::Sums::leave(const Share& share, Bytes capacity) const {
  const Bytes with =
      share.swap ? slices + std::max(swap, *share.bytes) : slices + swap + *share.bytes;
  const bool in_time = share.compute == 0 || (compute + share.compute <= kMostComputeShare &&
                                              of_user + share.compute <= share.most_of_user);
  return !whole && with <= capacity && in_time;
}

template <class Visit>
void GpuTimeline::for_each_moment(WallTime from, WallTime until, Against against, Visit visit,
                                  uid_t uid) const {
  // Sums grow only where a use begins, so it is enough to check these times. Check `from` first,
  // because it decides most cases.
  for (std::size_t i = 0; i <= uses_.size(); ++i) {
    const WallTime at = i == 0 ? from : uses_[i - 1].from;
    if (at >= until || (i > 0 && at <= from)) continue;
    Sums sums{.uid = uid};
    for (const Use& use : uses_) {
      if (!counts(use, against) || use.from > at || use.until <= at) continue;
      sums.add(use.share);
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
  const auto visit = [&](const Sums& sums) {
    fits = sums.leave(share, capacity);
    return fits;
  };
  for_each_moment(from, until, against, visit, share.uid);
  return fits;
}

bool GpuTimeline::may_fit(const Share& share, WallTime now, bool endless, Against against,
                          Bytes capacity) const {
  Sums sums{.uid = share.uid};
  for (const Use& use : uses_) {
    if (use.until != kNever || !counts(use, against)) continue;
    // A use that begins later does not count if the request has an end, because the request could
    // end before. A booking that begins later never counts, because a request without an end may
    // leave when the booking begins.
    if (use.from > now && (!endless || use.source == Source::kBooking)) continue;
    if (!share.bytes) return false;
    sums.add(use.share);
  }
  return !share.bytes || sums.leave(share, capacity);
}

}  // namespace gpurota::lease
