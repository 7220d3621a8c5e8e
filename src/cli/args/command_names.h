// The names of gpurota's commands, and suggestions for an unknown command or option: a typing
// error, or another tool's name (docs/coming-from.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gpurota::cli {

bool is_command(std::string_view name);

// The commands that `word` may mean. If `word` is another tool's name ("proclist"), these are our
// commands for it ("ps"; possibly several). Otherwise this is our command that resembles `word` or
// starts with `word`, if there is exactly one.
struct MeantCommands {
  std::vector<std::string_view> names;
  bool slip = false;
};
MeantCommands meant_commands(std::string_view word);

// The `actions` ("list", …) that `word` may mean, as a typing error or as another tool's name.
std::vector<std::string_view> meant_actions(std::string_view word,
                                            const std::vector<std::string_view>& actions);
// The `names` ("--memory", …) that `option` may mean.
std::vector<std::string_view> meant_options(std::string_view option,
                                            const std::vector<std::string_view>& names);

}  // namespace gpurota::cli
