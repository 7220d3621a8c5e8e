// Limits how often something may happen: `most` times at once, and then as often as tokens return.
// Pure: the caller passes the time, and the rate may differ at each call (a changed setting). One
// thread at a time.
#pragma once

#include <algorithm>
#include <chrono>

namespace gpurota {

// Allows `most` uses at once. A spent bucket is full again after `refill`; tokens return evenly.
struct TokenRate {
  int most = 1;
  std::chrono::duration<double> refill = std::chrono::seconds(1);
};

class TokenBucket {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Takes one token if there is one; else returns false.
  bool take(Time now, const TokenRate& rate) {
    constexpr double kRounding = 1e-6;
    const double before = spent(now, rate);
    if (before + 1 > rate.most + kRounding) return false;
    spent_ = before + 1;
    at_ = now;
    return true;
  }
  // The number of tokens spent at `now`; 0: the bucket is full.
  double spent(Time now, const TokenRate& rate) const {
    return std::max(0.0, spent_ - rate.most * ((now - at_) / rate.refill));
  }
  // When the next token is available; in the past if one is available now. Rounded up to a
  // millisecond, because a timer that fires too early would find no token and fire again at once.
  Time next(const TokenRate& rate) const {
    const auto wait = std::max(0.0, (spent_ + 1 - rate.most) / rate.most) * rate.refill;
    return at_ + std::chrono::ceil<std::chrono::milliseconds>(wait);
  }

 private:
  double spent_ = 0;
  Time at_{};  // when `spent_` was computed
};

}  // namespace gpurota
