// What the words of `gpurota update` say. Pure.
#pragma once

#include "cli/args.h"
#include "cli/option_parser.h"

namespace gpurota::cli {

Result<Command> update_command(const Raw& raw);

}  // namespace gpurota::cli
