// The command line of `gpurota job` as data; see program_args.h.
#pragma once

#include "base/result.h"
#include "cli/args/program_args.h"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::cli {

// Actions: add, add-each, list, show, logs, wait, update, start, stop, restart, cancel, remove,
// export, apply. The name of apply is the file. A name with an index, "sweep[7]", means that item
// of an array, where there can be one.
struct JobOptions : ProgramOptions {
  bool force = false;
  bool secrets = false;  // of export
  bool follow = false;   // of logs
  // Of add and update:
  std::vector<std::string> run_options;  // as they were given
  std::optional<std::string> restart, output;
  // Not told: empty. One that is empty names none.
  std::vector<std::string> boot_after, after_success, after_end;
  std::optional<bool> tty;
  bool old_after = false;                         // --boot-after was written as --after
  std::optional<std::chrono::seconds> most_wait;  // of wait
  std::optional<std::string> array;               // of add
  std::string file;                               // of add-each
  std::optional<int> at_once;
  std::optional<int> item;  // that `name` had
  bool items = false;       // of list and show
  bool failed = false;      // of restart
};

// `words`: those behind `job`. Nothing: its help is wanted.
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
