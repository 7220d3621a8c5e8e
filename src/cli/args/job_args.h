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
// export, apply. For apply, `name` is the path of the file. A name with an index, "sweep[7]", means
// that item of an array, for actions that accept one.
struct JobOptions : ProgramOptions {
  bool force = false;
  bool secrets = false;  // for export
  bool follow = false;   // for logs
  // For add and update:
  std::vector<std::string> run_options;  // as given
  std::optional<std::string> restart, output;
  // Empty: the option was not given. One empty text: the option was given and names no job.
  std::vector<std::string> boot_after, after_success, after_end;
  std::optional<bool> tty;
  bool old_after = false;                         // the user wrote --after instead of --boot-after
  std::optional<std::chrono::seconds> most_wait;  // for wait
  std::optional<std::string> array;               // for add
  std::string file;                               // for add-each
  std::optional<int> at_once;
  std::optional<int> item;  // the index in `name`
  bool items = false;       // for list and show
  bool failed = false;      // for restart
};

// `words`: those after `job`. Nothing: help is wanted.
Result<std::optional<JobOptions>> parse_job(const std::vector<std::string>& words);

// One option of `gpurota run` as words: {"--memory", "8G"}, however it was written.
struct RunWord {
  std::string name;  // "--memory"
  std::optional<std::string> value;
};
Result<std::vector<RunWord>> split_run_words(const std::vector<std::string>& options);
// `before` with the options of `change`. An option of `change` replaces the same option in
// `before`, and options that exclude it.
std::vector<std::string> merge_run_words(const std::vector<RunWord>& before,
                                         const std::vector<RunWord>& change);

}  // namespace gpurota::cli
