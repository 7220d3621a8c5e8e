// The command line of `gpurota container-args`: part of args.cpp. Pure.
#pragma once

#include "cli/args.h"
#include "cli/option_parser.h"

namespace gpurota::cli {

Result<Command> parse_container_args(const Raw& raw);

}  // namespace gpurota::cli
