// The granularity at which the driver maps memory.
#pragma once

#include <cstdint>

namespace gpurota::interposer {

// The driver rounds every mapped size up to a multiple of this.
inline constexpr uint64_t kPageBytes = uint64_t{2} << 20;

}  // namespace gpurota::interposer
