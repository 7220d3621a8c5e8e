// Parses the words of `gpurota update`. Pure.
#pragma once

#include "cli/args/args.h"
#include "cli/args/option_parser.h"

namespace gpurota::cli {

Result<Command> update_command(const Raw& raw);

}  // namespace gpurota::cli
