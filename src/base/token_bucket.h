// Limits how often something may happen: so many times at once, and after that as often as time
// gives back. Pure: the caller knows the time, and the rate may be another at each call (a setting
// that was changed). Not for several threads at a time.
#pragma once

#include <algorithm>
#include <chrono>

namespace gpurota {

// `most` times at once. All that was used up is there again after `refill`; evenly, so a part of
// it sooner.
struct TokenRate {
  int most = 1;
  std::chrono::duration<double> refill = std::chrono::seconds(1);
};

class TokenBucket {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Once more, if it may.
  bool take(Time now, const TokenRate& rate) {
    constexpr double kRounding = 1e-6;
    const double before = spent(now, rate);
    if (before + 1 > rate.most + kRounding) return false;
    spent_ = before + 1;
    at_ = now;
    return true;
  }
  // How many times count just now; 0: the bucket is as a new one.
  double spent(Time now, const TokenRate& rate) const {
    return std::max(0.0, spent_ - rate.most * ((now - at_) / rate.refill));
  }
  // From when on it may once more; in the past if it may now. Rounded up to a millisecond, as a
  // timer that comes too early would find no token, and come again at once.
  Time next(const TokenRate& rate) const {
    const auto wait = std::max(0.0, (spent_ + 1 - rate.most) / rate.most) * rate.refill;
    return at_ + std::chrono::ceil<std::chrono::milliseconds>(wait);
  }

 private:
  double spent_ = 0;
  Time at_{};  // as of then
};

}  // namespace gpurota
