// The command line of `gpurota job` as data; see args.h. Parsing touches nothing: variables and files
// that are named are read by whoever carries the command out.
#pragma once

#include "base/result.h"

#include <optional>
#include <string>
#include <vector>

namespace gpurota::cli {

struct JobOptions {
  std::string action;  // add, list, show, logs, start, stop, restart, remove
  std::string name;    // empty: list
  std::optional<std::string> user;
  bool json = false;
  bool force = false;
  std::optional<int> lines;  // of logs
  // Of add:
  std::vector<std::string> run_options;  // as they were given
  std::vector<std::string> command;
  std::optional<std::string> workdir, restart;
  std::vector<std::string> variables, variable_files, after;
};

// `words`: those behind `job`. Nothing: its help is wanted. Whether `gpurota run` knows the options of
// `add` is for parse_arguments.
Result<std::optional<JobOptions>> parse_job(const std::vector<std::string>& words);

}  // namespace gpurota::cli
