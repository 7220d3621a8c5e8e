// The command line of `gpurota filler` as data; see args.h. Parsing touches nothing.
#pragma once

#include "base/bytes.h"
#include "base/result.h"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::cli {

struct FillerOptions {
  std::string action;  // add, list, logs, pause, resume, remove
  std::string name;    // empty: list
  std::optional<std::string> user;
  bool json = false;
  std::optional<int> lines;  // of logs
  // Of add:
  std::vector<std::string> command;
  std::vector<std::string> gpu_ids;
  std::optional<int> instances;
  std::optional<SizeSpec> memory;
  std::optional<std::chrono::seconds> idle_after, grace;
  std::optional<std::string> on_yield, workdir;
  std::vector<std::string> variables, variable_files;
};

// `words`: those behind `filler`. Nothing: its help is wanted.
Result<std::optional<FillerOptions>> parse_filler(const std::vector<std::string>& words);

}  // namespace gpurota::cli
