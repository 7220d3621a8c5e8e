// A text that is not TOML: what is wrong with it, in our words. The library's own words name its
// grammar; most mistakes are a few that everybody makes. Pure.
#pragma once

#include "config/loaded.h"

#include <string_view>

namespace gpurota::config {

// `line` and `description` are those of the library. The place has no file.
Problem explain_syntax(std::string_view text, int line, std::string_view description);

}  // namespace gpurota::config
