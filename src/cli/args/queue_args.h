// The command lines of reserve, queue, cancel, explain, drain and undrain: part of args.cpp. Pure.
#pragma once

#include "cli/args/args.h"
#include "cli/args/option_parser.h"

namespace gpurota::cli {

bool is_queue_command(const std::string& name);
Result<Command> queue_command(const std::string& name, const Raw& raw);

// Reads the options of a lease, except its duration (args.cpp).
Result<void> read_wishes(const Raw& raw, LeaseWishes& wishes);

}  // namespace gpurota::cli
