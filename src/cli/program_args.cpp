#include "cli/program_args.h"

#include "base/text.h"

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

}  // namespace

Result<std::optional<std::string>> parse_action(const Vocabulary& vocabulary, const Words& words) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h") return std::nullopt;
  const auto& known = vocabulary.actions;
  if (std::find(known.begin(), known.end(), words[0]) != known.end()) return words[0];
  return fail(Code::kInvalid, fmt::format("there is no command '{} {}': use {}", vocabulary.what,
                                          display_text(words[0], 40), listed(known)));
}

Result<bool> parse_named(const Vocabulary& vocabulary, const Words& words, std::vector<Option> own,
                         ProgramOptions& program) {
  const std::string& action = program.action;
  bool help = false;
  std::optional<std::string> lines;
  own.push_back({'h', "--help", &help});
  if (action != "add" && action != "apply") {
    own.push_back({'\0', "--user", nullptr, &program.user});
  }
  if (action == "list" || action == "show") own.push_back({'\0', "--json", &program.json});
  if (action == "logs") own.push_back({'n', "--lines", nullptr, &lines});
  OptionParser parser(std::move(own), vocabulary.what);
  GPUROTA_ASSIGN_OR_RETURN(const Words names, parser.parse(words, false));
  if (help) return false;
  GPUROTA_ASSIGN_OR_RETURN(program.lines, number_of("--lines", lines, 10'000'000));
  if (names.size() > 1) {
    return fail(Code::kInvalid,
                fmt::format("unexpected '{}'{}", display_text(names[1], 60),
                            action == "add" ? ": the command comes last, after '--'" : ""));
  }
  if (!names.empty()) program.name = names[0];
  return true;
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
