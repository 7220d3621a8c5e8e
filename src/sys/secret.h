// Secrets: the tokens of leases.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <string>

namespace gpurota::sys {

// `digits` hex digits from the kernel's random source. Blocks only in the first seconds after the
// machine boots.
Result<std::string> random_hex(std::size_t digits);

}  // namespace gpurota::sys
