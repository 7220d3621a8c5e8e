// A number on a command line. Pure.
#pragma once

#include "base/result.h"

#include <string_view>

namespace gpurota::kube {

// kInvalid: the sentence names `option` and what it takes.
Result<int> parse_count(const char* option, std::string_view text, int least, int most);

}  // namespace gpurota::kube
