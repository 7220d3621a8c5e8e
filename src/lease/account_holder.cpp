#include "lease/account_holder.h"

#include <algorithm>

namespace gpurota::lease {
namespace {

// A measurement of a busy tenant is too low by the allocations that are under way: the tenant
// counts memory as used before the driver allocates it, and until after the driver has freed it. So
// a higher figure is believed if this many samples in a row show at least that much; a lower figure
// is believed only if the tenant has neither allocated nor freed memory during these samples. The
// samples take 1 s at the default period.
constexpr std::size_t kAgreeingSamples = 4;

}  // namespace

std::optional<Bytes> AccountHolder::measure(const Measurement& measurement) {
  if (!measurement.held || measurement.taken < reserved_since) return std::nullopt;
  // The tenant itself reports the hint, so no more is believed than what the daemon granted.
  const Bytes used = std::min(measurement.used_hint, granted);
  const Bytes imported = std::min(measurement.imported_hint, used);
  const Reading reading{*measurement.held - used, used, *measurement.held - (used - imported)};
  if (!unmeasured) {
    settle(reading);
    return std::nullopt;
  }
  // A tenant neither allocates nor frees memory while it waits for a new context to be measured, so
  // this figure is exact. For a tenant that came with contexts the figure is too low, as for any
  // busy tenant; later samples raise it.
  unmeasured = false;
  window.clear();
  overhead = is_busy ? std::max(overhead, reading.beside)
                     : std::clamp(overhead + context_reserve, reading.beside, reading.most_beside);
  is_busy = false;
  context_reserve = Bytes();
  if (contexts != 1 || context_cost_known || reading.beside != reading.most_beside)
    return std::nullopt;
  context_cost_known = true;
  return reading.beside;
}

void AccountHolder::measure_dead(const Measurement& measurement) {
  if (!measurement.held || *measurement.held >= charge()) return;
  granted = std::max(*measurement.held, shared);
  overhead = Bytes();
  context_reserve = Bytes();
}

void AccountHolder::settle(const Reading& reading) {
  window.push_back(reading);
  if (window.size() > kAgreeingSamples) window.pop_front();
  if (window.size() < kAgreeingSamples) return;
  const bool quiet = std::all_of(window.begin(), window.end(),
                                 [&](const Reading& other) { return other.used == reading.used; });
  Bytes least = reading.beside;
  Bytes most = reading.most_beside;
  bool imports = false;
  for (const Reading& other : window) {
    least = std::min(least, other.beside);
    most = std::max(most, other.most_beside);
    imports = imports || other.beside != other.most_beside;
  }
  // Without imports the two bounds are equal. With imports the overhead lies between the bounds,
  // because some drivers count imported memory for the importing process, and others do not. The
  // overhead changes only if the old overhead is outside the bounds. The bounds span all samples,
  // because an import may have begun or ended during one of the samples.
  if (!imports) most = least;
  overhead = quiet ? std::clamp(overhead, least, most) : std::max(overhead, least);
}

// Memory that a tenant claims to return beyond its grant is ignored.
void AccountHolder::give_back(Bytes bytes) {
  owed += bytes;
  settle_owed();
}

void AccountHolder::set_shared(Bytes bytes) {
  shared = bytes;
  settle_owed();
}

void AccountHolder::settle_owed() {
  const Bytes cut = std::min(owed, granted - shared);
  granted -= cut;
  owed = std::min(owed - cut, shared);
}

}  // namespace gpurota::lease
