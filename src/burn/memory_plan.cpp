#include "burn/memory_plan.h"

#include <algorithm>

namespace gpurota::burn {
namespace {

constexpr std::uint64_t kGranule = std::uint64_t{2} << 20;  // the unit in which drivers allocate
constexpr std::uint64_t kSmallestChunk = kGranule;
// Large enough that 80 GiB are 640 allocations, small enough that freeing one is quick.
constexpr std::uint64_t kLargestChunk = std::uint64_t{128} << 20;

Bytes chunk_for(Bytes target) {
  const std::uint64_t eighth = target.count() / 8 / kGranule * kGranule;
  return Bytes(std::clamp(eighth, kSmallestChunk, kLargestChunk));
}

}  // namespace

MemoryPlan::MemoryPlan(Bytes target, Bytes total)
    : target_(target),
      chunk_(chunk_for(target)),
      reserve_(std::min(kReserve, Bytes(total.count() / 16))) {}

MemoryStep MemoryPlan::next(const MemoryState& state, TimePoint now) {
  if (state.free < reserve_) {
    on_short(now);
    return state.held.is_zero() ? MemoryStep::kKeep : MemoryStep::kGiveBack;
  }
  const bool wanted = state.held + chunk_ <= target_;
  // Enough must be left after taking a chunk; otherwise the GPU would be short at once.
  const bool fits = state.free >= reserve_ + chunk_;
  if (!wanted || !fits || now < take_again_at_) return MemoryStep::kKeep;
  is_short_ = false;
  return MemoryStep::kTake;
}

void MemoryPlan::on_refused(TimePoint now) { on_short(now); }

void MemoryPlan::on_short(TimePoint now) {
  if (!is_short_ && take_again_at_ != TimePoint::min()) wait_ = std::min(wait_ * 2, kLongestWait);
  is_short_ = true;
  take_again_at_ = now + wait_;
}

}  // namespace gpurota::burn
