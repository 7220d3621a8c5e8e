// The commands of gpurota as rows, generated from commands.toml by tools/command_line.py. Any
// thread.
#pragma once

#include "cli/raw.h"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpurota::cli {

struct OptionRow {
  char letter;            // '\0': none
  std::string_view name;  // "--memory"
  bool Raw::*flag;        // not null: a switch; else `value` or `values` is not null
  std::optional<std::string> Raw::*value;
  std::vector<std::string> Raw::*values;
  std::string_view words;  // allowed values, between spaces; empty: any
};

struct CommandRow {
  std::string_view name;   // "run", "job", "job add"
  std::size_t most_words;  // without options
  std::span<const OptionRow> options;
  std::string_view help;  // empty for actions, and for commands whose help is elsewhere
};

std::span<const CommandRow> all_commands();
std::span<const OptionRow> options_of_every_command();
std::span<const OptionRow> options_without_command();
std::string_view general_help();

// Null: there is no such command. "job add" is a command, too.
const CommandRow* find_command(std::string_view name);
// The help of a command; else the general help.
std::string_view help_text(std::string_view topic);

}  // namespace gpurota::cli
