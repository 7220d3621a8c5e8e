#include "cli/args/command_table.h"

#include <algorithm>

namespace gpurota::cli {

const CommandRow* find_command(std::string_view name) {
  const auto all = all_commands();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [name](const CommandRow& each) { return each.name == name; });
  return found == all.end() ? nullptr : &*found;
}

std::string_view help_text(std::string_view topic) {
  const CommandRow* const command = find_command(topic);
  return command != nullptr && !command->help.empty() ? command->help : general_help();
}

}  // namespace gpurota::cli
