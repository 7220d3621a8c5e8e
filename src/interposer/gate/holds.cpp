#include "interposer/gate/holds.h"

namespace gpurota::interposer {
namespace {

// The gap shrinks by one part in this many with each burst that it did not have to cover.
constexpr int64_t kGapShrink = 16;

bool is_busy(uint32_t word) { return (word & 1) != 0; }

}  // namespace

void Holds::begin(uint32_t budget, int64_t now_us) {
  const Lock lock(mutex_);
  if (counted_us_ == 0) {
    counted_us_ = now_us;
    saved_us_ = kMostSavedUs;
  }
  settle(budget, now_us);
  ++inside_;
}

void Holds::end(uint32_t budget, int64_t now_us) {
  const Lock lock(mutex_);
  settle(budget, now_us);
  --inside_;
}

// Adds the budget of the time since the last call, and takes that time off if something was held
// back during it. Returns for how long submissions may be held back from now on.
int64_t Holds::settle(uint32_t budget, int64_t now_us) {
  const int64_t past = now_us > counted_us_ ? now_us - counted_us_ : 0;
  counted_us_ += past;
  saved_us_ += past * budget / 1000;
  if (inside_ > 0) {
    saved_us_ -= past;
    held_us_.fetch_add(static_cast<uint64_t>(past), std::memory_order_relaxed);
  }
  if (saved_us_ > kMostSavedUs) saved_us_ = kMostSavedUs;
  if (saved_us_ <= 0) exhausted_ = true;
  if (saved_us_ >= kLeastSavedUs) exhausted_ = false;
  return exhausted_ ? 0 : saved_us_;
}

// The gap grows when it was too short: the other process continued soon after it was over.
HoldStep Holds::check(uint32_t index, uint32_t value, int64_t now_us) {
  Word& word = words_[index];
  if (value != word.seen) {
    const bool continued = !is_busy(word.seen) && now_us - word.seen_us < kMostGapUs;
    const int64_t gap = gap_us();
    gap_us_ = continued ? gap * 2 : gap - gap / kGapShrink;
    if (gap_us_ < kLeastGapUs) gap_us_ = kLeastGapUs;
    if (gap_us_ > kMostGapUs) gap_us_ = kMostGapUs;
    word.seen = value;
    word.seen_us = now_us;
    busy_us_.store(now_us, std::memory_order_relaxed);
  }
  const int64_t left = word.seen_us + (is_busy(value) ? kStuckUs : gap_us()) - now_us;
  if (left > 0) return {HoldStep::Kind::kWait, index, value, left};
  word.passed.store(value, std::memory_order_relaxed);
  return {};
}

}  // namespace gpurota::interposer
