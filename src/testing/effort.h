// How much a test tries that computes for long in one thread: with sanitizers a tenth, as they find
// there what a little shows, and take ten times as long.
#pragma once

#include <algorithm>

namespace gpurota::testing {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// Of the usual number of seeds, days or rounds.
template <class Number>
constexpr Number effort(Number usual) {
  constexpr Number kLess{10};
  return kSanitized ? std::max(usual / kLess, Number{1}) : usual;
}

}  // namespace gpurota::testing
