#include "lease/fair_share.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstdint>

namespace gpurota::lease {
namespace {

double seconds_of(std::chrono::duration<double> time) { return time.count(); }

// Use divided by weight, kept as a fraction so that comparing needs no division.
struct Ratio {
  std::int64_t used;
  std::int64_t weight;
};

std::strong_ordering compare(Ratio a, Ratio b) { return a.used * b.weight <=> b.used * a.weight; }

Ratio own(const FairShare& share) { return {share.used.count(), share.weight}; }

Ratio outer(const FairShare& share) {
  return share.group.empty() ? own(share) : Ratio{share.group_used.count(), share.group_weight};
}

}  // namespace

bool goes_before(const Claim& a, const Claim& b) {
  if (a.overdue != b.overdue) return a.overdue;
  if (!a.overdue) {
    if (const auto order = compare(outer(a.share), outer(b.share)); order != 0) return order < 0;
    if (const auto order = compare(own(a.share), own(b.share)); order != 0) return order < 0;
  }
  return a.since != b.since ? a.since < b.since : a.id < b.id;
}

double decayed(double used, WallTime::duration passed, std::chrono::seconds half_life) {
  return used * std::exp2(-std::max(0.0, seconds_of(passed)) / seconds_of(half_life));
}

// The integral of the decay over the time of use.
double decayed(double used, WallTime since, WallTime until, WallTime now,
               std::chrono::seconds half_life) {
  const double end = decayed(used, now - until, half_life);
  const double lasted = seconds_of(until - since) / seconds_of(half_life) * std::log(2.0);
  // Use of zero duration has nothing to integrate.
  if (lasted < 1e-9) return end;
  return end * -std::expm1(-lasted) / lasted;
}

}  // namespace gpurota::lease
