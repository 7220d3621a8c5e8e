// The command line of `gpurota config` as data. Parsing touches nothing.
#pragma once

#include "base/result.h"

#include <optional>
#include <string>
#include <vector>

namespace gpurota::cli {

struct ConfigOptions {
  std::string action;               // check, show or diff
  std::optional<std::string> file;  // for check and diff; nothing: the daemon's
  bool changed = false;             // show: only what differs from the default
  bool json = false;
  bool quiet = false;
};

// `words`: those after `config`. Nothing: help is wanted.
Result<std::optional<ConfigOptions>> parse_config(const std::vector<std::string>& words);

}  // namespace gpurota::cli
