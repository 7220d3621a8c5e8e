// How gpurota-sim says that it failed.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string_view>

namespace gpurota::sim {

constexpr int kExitFailed = 125;

// One line on standard error; kExitFailed.
inline int failed(std::string_view what) {
  fmt::print(stderr, "gpurota-sim: {}\n", what);
  return kExitFailed;
}

}  // namespace gpurota::sim
