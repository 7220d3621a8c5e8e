#include "cli/args/config_args.h"

#include "base/text.h"
#include "cli/args/program_args.h"

#include <fmt/format.h>

namespace gpurota::cli {

Result<std::optional<ConfigOptions>> parse_config(const Words& words) {
  using Parsed = std::optional<ConfigOptions>;
  GPUROTA_ASSIGN_OR_RETURN(const auto action, parse_action({"config", {}}, words));
  if (!action) return Parsed();
  Raw typed;
  GPUROTA_ASSIGN_OR_RETURN(const Words files,
                           parse_words(action_options("config " + *action, typed), "config",
                                       Words(words.begin() + 1, words.end())));
  if (typed.help) return Parsed();
  const std::size_t most = *action == "show" ? 0 : 1;
  if (files.size() > most) {
    return fail(Code::kInvalid, fmt::format("unexpected '{}' (see 'gpurota config --help')",
                                            display_text(files[most], 60)));
  }
  ConfigOptions options;
  options.action = *action;
  if (!files.empty()) options.file = files.front();
  if (options.file == "") return fail(Code::kInvalid, "the file has no name");
  options.changed = typed.changed;
  options.json = typed.json;
  options.quiet = typed.quiet;
  return Parsed(std::move(options));
}

}  // namespace gpurota::cli
