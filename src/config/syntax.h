// Explains in our words what is wrong with a text that is not TOML. The library's own messages use
// terms of its grammar; most mistakes are a few common ones. Pure.
#pragma once

#include "config/loaded.h"

#include <string_view>

namespace gpurota::config {

// `line` and `description` come from the library. The resulting place has no file.
Problem explain_syntax(std::string_view text, int line, std::string_view description);

}  // namespace gpurota::config
