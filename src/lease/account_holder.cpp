#include "lease/account_holder.h"

#include <algorithm>

namespace gpurota::lease {
namespace {

// A measurement of a busy tenant is too low by what is on its way: the tenant charges before the
// driver takes, and credits after it gives. So a rise is believed when this many looks in a row show
// at least that much, and a fall only when the tenant has neither allocated nor freed all that time.
// 1 s at the default period.
constexpr std::size_t kAgreeingLooks = 4;

}  // namespace

std::optional<Bytes> AccountHolder::measure(const Measurement& measurement) {
  if (!measurement.held || measurement.taken < reserved_since) return std::nullopt;
  // The hint is the tenant's own word: believed only as far as the daemon granted.
  const Bytes used = std::min(measurement.used_hint, granted);
  const Look look{*measurement.held - used, used};
  if (!unmeasured) {
    settle(look);
    return std::nullopt;
  }
  // A tenant is quiet while it waits for a new context to be measured: this figure is exact. Of one that came with contexts it is too low,
  // as of any busy one; the looks to come raise it.
  unmeasured = false;
  window.clear();
  overhead = is_busy ? std::max(overhead, look.beside) : look.beside;
  is_busy = false;
  context_reserve = Bytes();
  if (contexts != 1 || context_cost_known) return std::nullopt;
  context_cost_known = true;
  return look.beside;
}

void AccountHolder::measure_dead(const Measurement& measurement) {
  if (!measurement.held || *measurement.held >= charge()) return;
  granted = *measurement.held;
  overhead = Bytes();
  context_reserve = Bytes();
}

void AccountHolder::settle(const Look& look) {
  window.push_back(look);
  if (window.size() > kAgreeingLooks) window.pop_front();
  if (window.size() < kAgreeingLooks) return;
  const bool quiet = std::all_of(window.begin(), window.end(),
                                 [&](const Look& other) { return other.used == look.used; });
  Bytes least = look.beside;
  for (const Look& other : window) least = std::min(least, other.beside);
  overhead = quiet ? least : std::max(overhead, least);
}

}  // namespace gpurota::lease
