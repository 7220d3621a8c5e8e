// The names of gpurota's commands, and which of them a mistyped word may have meant.
#pragma once

#include <string>
#include <string_view>

namespace gpurota::cli {

bool is_command(std::string_view name);

// The command that `word` is a slip of the finger for; empty if there is none, or more than one.
std::string nearest_command(std::string_view word);

}  // namespace gpurota::cli
