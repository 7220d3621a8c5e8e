// Output of GPUROTA_DEBUG: what is hooked, asked, granted and refused.
//
// One write(2) per line, so that the lines of threads and processes do not mix; no allocation, no
// stdio. Costs one load while the variable is not set. Any thread.
#pragma once

#include "interposer/os/config.h"

namespace gpurota::interposer {

__attribute__((format(printf, 1, 2))) void debug_line(const char* format, ...);

}  // namespace gpurota::interposer

#define GPUROTA_DEBUG(...)                                                                     \
  do {                                                                                         \
    if (::gpurota::interposer::config().debug) ::gpurota::interposer::debug_line(__VA_ARGS__); \
  } while (false)
