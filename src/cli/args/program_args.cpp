#include "cli/args/program_args.h"

#include "base/nearest.h"
#include "base/text.h"
#include "cli/args/command_names.h"
#include "cli/args/command_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota::cli {
namespace {

// "add, list or remove".
std::string listed(const Words& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  }
  return text;
}

Words actions_of(const std::string& command) {
  Words actions;
  for (const CommandRow& row : all_commands()) {
    if (row.name.starts_with(command + " ")) {
      actions.emplace_back(row.name.substr(command.size() + 1));
    }
  }
  return actions;
}

}  // namespace

Result<std::optional<std::string>> parse_action(const Vocabulary& vocabulary, const Words& words) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h") return std::nullopt;
  const Words known = actions_of(vocabulary.what);
  if (std::find(known.begin(), known.end(), words[0]) != known.end()) return words[0];
  std::vector<std::string> meant;
  for (const std::string_view action :
       meant_actions(words[0], std::vector<std::string_view>(known.begin(), known.end()))) {
    meant.push_back(fmt::format("{} {}", vocabulary.what, action));
  }
  const std::string why =
      fmt::format("there is no command '{} {}'", vocabulary.what, display_text(words[0], 40));
  if (meant.empty()) return fail(Code::kInvalid, fmt::format("{}: use {}", why, listed(known)));
  return fail(Code::kInvalid,
              why + did_you_mean(std::vector<std::string_view>(meant.begin(), meant.end()), "'"));
}

Result<void> parse_named(const Vocabulary& vocabulary, const Words& words, Raw& typed,
                         ProgramOptions& program) {
  const std::string& action = program.action;
  GPUROTA_ASSIGN_OR_RETURN(
      const Words names,
      parse_words(action_options(vocabulary.what + " " + action, typed), vocabulary.what, words));
  if (typed.help) return {};
  GPUROTA_ASSIGN_OR_RETURN(program.lines, number_of("--lines", typed.lines, 10'000'000));
  program.user = typed.user;
  program.reason = typed.reason;
  program.json = typed.json;
  program.quiet = typed.quiet;
  program.workdir = typed.workdir;
  program.variables = typed.env;
  program.variable_files = typed.env_file;
  const CommandRow* const row = find_command(vocabulary.what + " " + action);
  const std::size_t most = row == nullptr ? 1 : std::max<std::size_t>(row->most_words, 1);
  if (names.size() > most) {
    return fail(Code::kInvalid,
                fmt::format("unexpected '{}'{}", display_text(names[most], 60),
                            action == "add" ? ": the command comes last, after '--'" : ""));
  }
  if (names.empty()) return {};
  program.name = names[0];
  program.others.assign(names.begin() + 1, names.end());
  return {};
}

Result<void> check_name(const Vocabulary& vocabulary, const ProgramOptions& program) {
  if (!program.name.empty()) return {};
  return fail(Code::kInvalid,
              fmt::format("which {0}? 'gpurota {0} list' shows them", vocabulary.what));
}

Result<void> check_definition(const Vocabulary& vocabulary, const ProgramOptions& program,
                              bool update) {
  if (program.name.empty() || (!update && program.command.empty())) {
    return fail(Code::kInvalid,
                fmt::format("write the name of the {0} first and its command last, after '--':\n  "
                            "gpurota {0} {1} {2}",
                            vocabulary.what, program.action, vocabulary.example));
  }
  for (const std::string& variable : program.variables) {
    if (variable.find('=') == std::string::npos) continue;
    return fail(Code::kInvalid,
                "--env takes only the name of a variable; its value comes from your environment, "
                "since everybody can read the command line. Or use --env-file");
  }
  return {};
}

}  // namespace gpurota::cli
