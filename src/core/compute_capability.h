// The compute capability of a GPU, as people write it. Pure.
#pragma once

#include "base/result.h"

#include <string_view>

namespace gpurota {

// "8.0" is 80, and so is "8". kInvalid; the caller adds an example to the message.
Result<int> parse_compute_capability(std::string_view text);

}  // namespace gpurota
