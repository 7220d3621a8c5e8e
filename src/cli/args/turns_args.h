// The command lines of turns and set, and the options of a lease about turns, latency and compute
// time: part of args.cpp. Pure.
#pragma once

#include "cli/args/args.h"
#include "cli/args/option_parser.h"

namespace gpurota::cli {

Result<Command> turns_command(const std::string& name, const Raw& raw);

// The parser has refused other words than "normal" and "interactive".
std::optional<LatencyClass> latency_of(const std::optional<std::string>& text);

// "30%": percent of the compute time.
Result<std::optional<int>> compute_of(const std::optional<std::string>& text);
// "50%": the most percent of the compute time; 100: no bound.
Result<std::optional<int>> compute_max_of(const std::optional<std::string>& text);

// "high", "normal", "low", or a number from -100 to 100.
Result<std::optional<int>> priority_of(const std::optional<std::string>& text);

}  // namespace gpurota::cli
