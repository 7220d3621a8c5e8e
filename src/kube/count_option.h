// Values of options that the plugins share. Pure.
#pragma once

#include "base/bytes.h"
#include "base/result.h"

#include <string_view>

namespace gpurota::kube {

// kInvalid: the sentence names `option` and what it takes.
Result<int> parse_count(const char* option, std::string_view text, int least, int most);
// Of --memory-unit.
Result<Bytes> parse_memory_unit(std::string_view text);

}  // namespace gpurota::kube
