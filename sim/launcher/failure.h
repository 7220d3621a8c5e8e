// How gpurota-sim reports a failure.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string_view>

namespace gpurota::sim {

constexpr int kExitFailed = 125;

// Prints one line on standard error; returns kExitFailed.
inline int failed(std::string_view what) {
  fmt::print(stderr, "gpurota-sim: {}\n", what);
  return kExitFailed;
}

}  // namespace gpurota::sim
