// The common part of the command lines of `gpurota job` and `gpurota filler`: both name programs
// that the daemon runs. See args.h. Parsing touches nothing: the code that carries out the command
// reads the named variables and files.
#pragma once

#include "base/result.h"
#include "cli/args/option_parser.h"

#include <optional>
#include <string>
#include <vector>

namespace gpurota::cli {

struct ProgramOptions {
  std::string action;
  std::string name;                 // empty: all
  std::vector<std::string> others;  // further names, for actions that take several
  std::optional<std::string> user;
  bool json = false;
  bool quiet = false;                 // given after the action
  std::optional<int> lines;           // for logs
  std::optional<std::string> reason;  // for actions on another user's program
  // For definitions:
  std::vector<std::string> command;
  std::optional<std::string> workdir;
  std::vector<std::string> variables, variable_files;
};

// The words of messages about the program: a job or a filler. The table of commands has the actions
// and their options.
struct Vocabulary {
  std::string what;     // "job"
  std::string example;  // a definition: "web --memory 8G -- python serve.py"
};

// The first word, which must be an action. Nothing: help is wanted.
Result<std::optional<std::string>> parse_action(const Vocabulary& vocabulary, const Words& words);
// `words` after the action, up to `--`: the action's options, and as many names as the table of
// commands allows, usually one. Fills `typed`, and `program` with the options that programs share.
Result<void> parse_named(const Vocabulary& vocabulary, const Words& words, Raw& typed,
                         ProgramOptions& program);
// For an action on one program.
Result<void> check_name(const Vocabulary& vocabulary, const ProgramOptions& program);
// For a definition. `update`: the command may be left out.
Result<void> check_definition(const Vocabulary& vocabulary, const ProgramOptions& program,
                              bool update);

}  // namespace gpurota::cli
