// Finds the main file of the daemon's configuration for the CLI.
#pragma once

#include "cli/commands.h"
#include "config/loaded.h"

#include <optional>
#include <string>
#include <vector>

namespace gpurota::cli {

struct MainFile {
  std::string path;
  bool required = false;
};

// The named file; else the file that the running daemon reports; else the usual file. Only the
// usual file may be missing.
MainFile find_main_file(const Context& context, const std::optional<std::string>& named = {});

// Users and groups that a configuration names and the machine does not know. May take as long as a
// name service does.
std::vector<config::Problem> read_unknown_accounts(const config::Loaded& loaded);

}  // namespace gpurota::cli
