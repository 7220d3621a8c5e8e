// The command lines of setup and notify: part of args.cpp. Pure.
#pragma once

#include "cli/args/args.h"
#include "cli/args/option_parser.h"

namespace gpurota::cli {

Result<Command> setup_command(const Raw& raw);
Result<Command> notify_command(const Raw& raw);

}  // namespace gpurota::cli
