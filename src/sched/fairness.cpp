#include "sched/fairness.h"

#include "sched/seconds.h"

#include <algorithm>

namespace gpurota::sched {
namespace {

// Adds a microsecond, so that rounding never makes a deadline expire before it is due.
Duration after_seconds(double s) { return from_seconds(s) + std::chrono::microseconds(1); }

}  // namespace

void FairClock::stop(TimePoint now, unsigned weight) {
  value_ = read(now, weight);
  running_ = false;
}

double FairClock::read(TimePoint now, unsigned weight) const {
  if (!running_) return value_;
  return value_ + seconds(now - since_) / std::max(weight, 1u);
}

void PriorityBudget::set(double share, Duration burst) {
  share_ = std::clamp(share, 0.0, 1.0);
  burst_ = std::max(seconds(burst), 0.001);
  left_ = std::min(left_, burst_);
  spent_ = spent_ || share_ <= 0;
}

void PriorityBudget::advance(TimePoint now, bool draining) {
  const double passed = std::max(seconds(now - at_), 0.0);
  at_ = now;
  left_ = std::clamp(left_ + passed * (draining ? share_ - 1 : share_), 0.0, burst_);
  if (left_ <= 0) spent_ = share_ < 1;
  if (left_ >= burst_ / 2 && share_ > 0) spent_ = false;
}

TimePoint PriorityBudget::turns_at(bool draining) const {
  if (!spent_ && draining && share_ < 1) return at_ + after_seconds(left_ / (1 - share_));
  if (spent_ && share_ > 0) return at_ + after_seconds((burst_ / 2 - left_) / share_);
  return TimePoint::max();
}

}  // namespace gpurota::sched
