// The command line of `gpurota job` as data; see args.h. Parsing touches nothing: variables and files
// that are named are read by whoever carries the command out.
#pragma once

#include "base/result.h"

#include <optional>
#include <string>
#include <vector>

namespace gpurota::cli {

struct JobOptions {
  std::string action;  // add, list, show, logs, update, start, stop, restart, remove, export, apply
  std::string name;    // empty: list, export; of apply the file
  std::optional<std::string> user;
  bool json = false;
  bool force = false;
  bool secrets = false;      // of export
  bool follow = false;       // of logs
  std::optional<int> lines;  // of logs
  // Of add and update:
  std::vector<std::string> run_options;  // as they were given
  std::vector<std::string> command;
  std::optional<std::string> workdir, restart, output;
  std::vector<std::string> variables, variable_files, after;
};

// `words`: those behind `job`. Nothing: its help is wanted. Whether `gpurota run` knows the options of
// `add` is for parse_arguments.
Result<std::optional<JobOptions>> parse_job(const std::vector<std::string>& words);

// One option of `gpurota run` as words: {"--memory", "8G"}, whatever it was written like.
struct RunWord {
  std::string name;  // "--memory"
  std::optional<std::string> value;
};
Result<std::vector<RunWord>> split_run_words(const std::vector<std::string>& options);
// `before` with those of `change` instead of the same ones, and of those that exclude them.
std::vector<std::string> merge_run_words(const std::vector<RunWord>& before,
                                         const std::vector<RunWord>& change);

}  // namespace gpurota::cli
