// How finely the driver maps memory.
#pragma once

#include <cstdint>

namespace gpurota::interposer {

// Every size that is mapped is rounded up to it.
inline constexpr uint64_t kPageBytes = uint64_t{2} << 20;

}  // namespace gpurota::interposer
