// The command line of commands for other machines (--host, --hosts-file): part of args.cpp. Pure.
#pragma once

#include "cli/args/args.h"
#include "cli/args/option_parser.h"

#include <string>
#include <string_view>
#include <vector>

namespace gpurota::cli {

inline constexpr std::size_t kMostHosts = 256;

// The command for other machines; `here` if `raw` names no hosts. `here`: the command for this
// machine, parsed from the same words. The caller parses `here` first, so a mistake is found before
// any host is asked.
Result<Command> on_hosts(const std::string& name, Raw& raw, Command here);

// Checks that ssh takes `name` only as the name of a host.
Result<void> check_host(const std::string& name);
// The hosts of a file, one on each line; # begins a comment. An error names the line, and the file
// by `path`.
Result<std::vector<std::string>> parse_hosts(std::string_view text, const std::string& path);
// Removes repetitions; kInvalid if more than kMostHosts are left.
Result<std::vector<std::string>> distinct_hosts(const std::vector<std::string>& hosts);

}  // namespace gpurota::cli
