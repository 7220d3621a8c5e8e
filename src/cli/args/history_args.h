// Parses the words of `gpurota report`, `history` and `events`. Pure.
#pragma once

#include "cli/args/args.h"
#include "cli/args/option_parser.h"

namespace gpurota::cli {

Result<Command> history_command(const Raw& raw, const std::string& name);

}  // namespace gpurota::cli
