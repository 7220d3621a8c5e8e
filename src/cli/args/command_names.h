// The names of gpurota's commands, and what a word that is none, or an option that there is not,
// may have meant: a slip of the finger, or what other tools call it (docs/coming-from.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gpurota::cli {

bool is_command(std::string_view name);

// The commands that `word` was meant to be: what other tools call so ("ps" for "proclist"; may be
// several), else the only one that it is a slip of the finger for, or begins.
struct MeantCommands {
  std::vector<std::string_view> names;
  bool slip = false;
};
MeantCommands meant_commands(std::string_view word);

// The ones of `actions` ("list", …) that `word` was meant to be, by a slip or by what other tools
// call it.
std::vector<std::string_view> meant_actions(std::string_view word,
                                            const std::vector<std::string_view>& actions);
// The ones of `names` ("--memory", …) that `option` was meant to be.
std::vector<std::string_view> meant_options(std::string_view option,
                                            const std::vector<std::string_view>& names);

}  // namespace gpurota::cli
