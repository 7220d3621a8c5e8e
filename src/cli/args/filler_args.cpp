#include "cli/args/filler_args.h"

#include <algorithm>

namespace gpurota::cli {
namespace {

const Vocabulary& filler_vocabulary() {
  static const Vocabulary words{"filler", "fold --memory 88% -- ./fold"};
  return words;
}

}  // namespace

Result<std::optional<FillerOptions>> parse_filler(const Words& words) {
  using Parsed = std::optional<FillerOptions>;
  GPUROTA_ASSIGN_OR_RETURN(const auto action, parse_action(filler_vocabulary(), words));
  if (!action) return Parsed();
  FillerOptions filler;
  filler.action = *action;
  const bool add = filler.action == "add";
  const auto dashes = add ? std::find(words.begin(), words.end(), "--") : words.end();
  if (dashes != words.end()) filler.command.assign(dashes + 1, words.end());
  Raw typed;
  GPUROTA_TRY(parse_named(filler_vocabulary(), Words(words.begin() + 1, dashes), typed, filler));
  if (typed.help) return Parsed();
  filler.on_yield = typed.on_yield;
  GPUROTA_ASSIGN_OR_RETURN(filler.gpu_ids, split_ids(typed.gpu_ids));
  GPUROTA_ASSIGN_OR_RETURN(filler.memory, size_of("--memory", typed.memory));
  GPUROTA_ASSIGN_OR_RETURN(filler.of_free, percent_of("--of-free", typed.of_free));
  GPUROTA_ASSIGN_OR_RETURN(filler.instances, number_of("--instances", typed.instances, 1024));
  GPUROTA_ASSIGN_OR_RETURN(filler.idle_after, time_of("--idle-after", typed.idle_after));
  GPUROTA_ASSIGN_OR_RETURN(filler.grace, time_of("--grace", typed.grace));
  if (add) GPUROTA_TRY(check_definition(filler_vocabulary(), filler, false));
  if (!add && filler.action != "list") GPUROTA_TRY(check_name(filler_vocabulary(), filler));
  return Parsed(std::move(filler));
}

}  // namespace gpurota::cli
