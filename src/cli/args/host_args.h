// The command line of commands for other machines (--host, --hosts-file): part of args.cpp. Pure.
#pragma once

#include "cli/args/args.h"
#include "cli/args/option_parser.h"

#include <string>
#include <string_view>
#include <vector>

namespace gpurota::cli {

inline constexpr std::size_t kMostHosts = 256;

// `here`: what the same words without hosts mean, which is what comes back if `raw` has none. So a
// mistake is found before anybody is asked.
Result<Command> on_hosts(const std::string& name, Raw& raw, Command here);

// Checks that ssh takes `name` as the name of a host and as nothing else.
Result<void> check_host(const std::string& name);
// The hosts of a file, one on each line; # begins a comment. An error names the line; `path` is for
// that.
Result<std::vector<std::string>> parse_hosts(std::string_view text, const std::string& path);
// Without those that are there already; kInvalid if they are more than kMostHosts.
Result<std::vector<std::string>> distinct_hosts(const std::vector<std::string>& hosts);

}  // namespace gpurota::cli
