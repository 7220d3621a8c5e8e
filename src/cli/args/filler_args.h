// The command line of `gpurota filler` as data; see program_args.h.
#pragma once

#include "base/bytes.h"
#include "base/result.h"
#include "cli/args/program_args.h"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::cli {

// Actions: add, list, logs, pause, resume, remove.
struct FillerOptions : ProgramOptions {
  // For add:
  std::vector<std::string> gpu_ids;
  std::optional<int> instances;
  std::optional<SizeSpec> memory;
  std::optional<int> of_free;  // per cent
  std::optional<std::chrono::seconds> idle_after, grace;
  std::optional<std::string> on_yield;
};

// `words`: those after `filler`. Nothing: help is wanted.
Result<std::optional<FillerOptions>> parse_filler(const std::vector<std::string>& words);

}  // namespace gpurota::cli
