// gpurotad's command line.
#pragma once

#include "base/log.h"
#include "base/result.h"

#include <optional>
#include <string>
#include <vector>

namespace gpurota::daemon {

struct Options {
  std::optional<std::string> runtime_dir;
  std::optional<std::string> state_dir;
  std::optional<std::string> config;
  std::optional<std::string> preload;
  std::optional<std::string> publish_library;
  std::optional<std::string> driver_root;
  log::Level log_level = log::Level::kInfo;
  bool check_config = false;
  bool restore_devices = false;
  std::string print;  // text to print before exiting; empty: run
};

// `words`: argv without argv[0]. kInvalid with what is wrong; never prints.
Result<Options> parse_options(const std::vector<std::string>& words);

}  // namespace gpurota::daemon
