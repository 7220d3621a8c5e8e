#include "cli/filler_args.h"

#include <algorithm>

namespace gpurota::cli {
namespace {

const Vocabulary& vocabulary() {
  static const Vocabulary words{"filler",
                                {"add", "list", "logs", "pause", "resume", "remove"},
                                "fold --memory 88% -- ./fold"};
  return words;
}

// What the options of add write into, as it was typed.
struct Typed {
  std::optional<std::string> instances, memory, idle_after, grace;
  Words gpu_ids;
};

std::vector<Option> options_of_add(FillerOptions& filler, Typed& typed) {
  return {{'i', "--gpu-ids", nullptr, nullptr, &typed.gpu_ids},
          {'\0', "--instances", nullptr, &typed.instances},
          {'m', "--memory", nullptr, &typed.memory},
          {'\0', "--idle-after", nullptr, &typed.idle_after},
          {'\0', "--grace", nullptr, &typed.grace},
          {'\0', "--on-yield", nullptr, &filler.on_yield},
          {'\0', "--workdir", nullptr, &filler.workdir},
          {'\0', "--env", nullptr, nullptr, &filler.variables},
          {'\0', "--env-file", nullptr, nullptr, &filler.variable_files}};
}

}  // namespace

Result<std::optional<FillerOptions>> parse_filler(const Words& words) {
  using Parsed = std::optional<FillerOptions>;
  GPUROTA_ASSIGN_OR_RETURN(const auto action, parse_action(vocabulary(), words));
  if (!action) return Parsed();
  FillerOptions filler;
  filler.action = *action;
  const bool add = filler.action == "add";
  const auto dashes = add ? std::find(words.begin(), words.end(), "--") : words.end();
  if (dashes != words.end()) filler.command.assign(dashes + 1, words.end());
  Typed typed;
  GPUROTA_ASSIGN_OR_RETURN(
      const bool named,
      parse_named(vocabulary(), Words(words.begin() + 1, dashes),
                  add ? options_of_add(filler, typed) : std::vector<Option>(), filler));
  if (!named) return Parsed();
  GPUROTA_ASSIGN_OR_RETURN(filler.gpu_ids, split_ids(typed.gpu_ids));
  GPUROTA_ASSIGN_OR_RETURN(filler.memory, size_of("--memory", typed.memory));
  GPUROTA_ASSIGN_OR_RETURN(filler.instances, number_of("--instances", typed.instances, 1024));
  GPUROTA_ASSIGN_OR_RETURN(filler.idle_after, time_of("--idle-after", typed.idle_after));
  GPUROTA_ASSIGN_OR_RETURN(filler.grace, time_of("--grace", typed.grace));
  if (add) GPUROTA_TRY(check_definition(vocabulary(), filler, false));
  if (!add && filler.action != "list") GPUROTA_TRY(check_name(vocabulary(), filler));
  return Parsed(std::move(filler));
}

}  // namespace gpurota::cli
