// The names of gpurota's commands, and what a word that is none, or an option that there is not, may have meant: a slip
// of the finger, or what other tools call it (docs/coming-from.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gpurota::cli {

bool is_command(std::string_view name);

// The command that `word` is a slip of the finger for; empty if there is none, or more than one.
std::string nearest_command(std::string_view word);
// What does here what `word` does elsewhere: "ps" for "proclist"; empty: not known.
std::string_view command_for(std::string_view word);

// The one of `names` ("--memory", …) that `option` was meant to be; empty if there is none, or more than one.
std::string_view nearest_option(std::string_view option,
                                const std::vector<std::string_view>& names);

}  // namespace gpurota::cli
