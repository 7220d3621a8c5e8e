// Reduces long computations of one thread in tests. With sanitizers a tenth of the work: they find
// errors in few rounds, and take ten times as long.
#pragma once

#include <algorithm>

namespace gpurota::testing {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// The number of seeds, days or rounds to use instead of `usual`.
template <class Number>
constexpr Number effort(Number usual) {
  constexpr Number kLess{10};
  return kSanitized ? std::max(usual / kLess, Number{1}) : usual;
}

}  // namespace gpurota::testing
