// The command line of `gpurota container-args`: part of args.cpp. Pure.
#pragma once

#include "cli/args/args.h"
#include "cli/args/option_parser.h"

namespace gpurota::cli {

Result<Command> parse_container_args(const Raw& raw);

}  // namespace gpurota::cli
