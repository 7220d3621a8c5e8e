#include "lease/keeping.h"

namespace gpurota::lease {

void Keeping::look(bool something_is_free, Duration most, TimePoint now) {
  if (others_until_ && (most == Duration::zero() || now >= *others_until_)) *this = {};
  if (others_until_) return;
  if (since_) kept_ += now - *since_;
  since_ = something_is_free ? std::optional(now) : std::nullopt;
  if (most == Duration::zero() || kept_ < most) return;
  others_until_ = now + most;
  since_.reset();
}

std::optional<TimePoint> Keeping::changes_at(Duration most) const {
  if (others_until_) return others_until_;
  if (!since_ || most == Duration::zero()) return std::nullopt;
  return *since_ + (most - kept_);
}

}  // namespace gpurota::lease
