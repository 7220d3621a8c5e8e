#include "cli/filler_args.h"

#include "base/text.h"
#include "cli/option_parser.h"
#include "cli/time_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace gpurota::cli {
namespace {

constexpr std::array kActions = {"add", "list", "logs", "pause", "resume", "remove"};

Result<void> check_add(const FillerOptions& filler) {
  if (filler.name.empty() || filler.command.empty()) {
    return fail(Code::kInvalid,
                "write the name of the filler first and its command last, after '--':\n"
                "  gpurota filler add fold --memory 88% -- ./fold");
  }
  for (const std::string& variable : filler.variables) {
    if (variable.find('=') == std::string::npos) continue;
    return fail(Code::kInvalid,
                "--env takes only the name of a variable; its value comes from your environment, "
                "since everybody can read the command line. Or use --env-file");
  }
  return {};
}

}  // namespace

Result<std::optional<FillerOptions>> parse_filler(const Words& words) {
  using Parsed = std::optional<FillerOptions>;
  if (words.empty() || words[0] == "--help" || words[0] == "-h") return Parsed();
  FillerOptions filler;
  filler.action = words[0];
  if (std::find(kActions.begin(), kActions.end(), filler.action) == kActions.end()) {
    return fail(
        Code::kInvalid,
        fmt::format("there is no command 'filler {}': use add, list, logs, pause, resume or remove",
                    display_text(filler.action, 40)));
  }
  const bool add = filler.action == "add";
  const auto dashes = add ? std::find(words.begin(), words.end(), "--") : words.end();
  if (dashes != words.end()) filler.command.assign(dashes + 1, words.end());
  Raw typed;
  OptionParser parser(action_options("filler " + filler.action, typed), "filler");
  GPUROTA_ASSIGN_OR_RETURN(const Words rest, parser.parse(Words(words.begin() + 1, dashes), false));
  if (typed.help) return Parsed();
  if (!rest.empty()) filler.name = rest[0];
  if (rest.size() > 1) {
    return fail(Code::kInvalid, fmt::format("unexpected '{}'{}", display_text(rest[1], 60),
                                            add ? ": the command comes last, after '--'" : ""));
  }
  GPUROTA_ASSIGN_OR_RETURN(filler.gpu_ids, split_ids(typed.gpu_ids));
  GPUROTA_ASSIGN_OR_RETURN(filler.memory, size_of("--memory", typed.memory));
  GPUROTA_ASSIGN_OR_RETURN(filler.instances, number_of("--instances", typed.instances, 1024));
  GPUROTA_ASSIGN_OR_RETURN(filler.lines, number_of("--lines", typed.lines, 10'000'000));
  GPUROTA_ASSIGN_OR_RETURN(filler.idle_after, time_of("--idle-after", typed.idle_after));
  GPUROTA_ASSIGN_OR_RETURN(filler.grace, time_of("--grace", typed.grace));
  filler.user = typed.user;
  filler.json = typed.json;
  filler.on_yield = typed.on_yield;
  filler.workdir = typed.workdir;
  filler.variables = typed.env;
  filler.variable_files = typed.env_file;
  if (add) {
    GPUROTA_TRY(check_add(filler));
  } else if (filler.name.empty() && filler.action != "list") {
    return fail(Code::kInvalid, "which filler? 'gpurota filler list' shows them");
  }
  return Parsed(std::move(filler));
}

}  // namespace gpurota::cli
