// The common part of the command lines of `gpurota job` and `gpurota filler`: both name programs
// that the daemon runs. See args.h. Parsing touches nothing: the code that carries the command out
// reads the variables and files that are named.
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
  std::vector<std::string> others;  // further names, where an action takes several
  std::optional<std::string> user;
  bool json = false;
  bool quiet = false;                 // said behind the action
  std::optional<int> lines;           // of logs
  std::optional<std::string> reason;  // of what is done to somebody else's
  // Of a definition:
  std::vector<std::string> command;
  std::optional<std::string> workdir;
  std::vector<std::string> variables, variable_files;
};

// The words of one of the two; its actions and their options are in the table of commands.
struct Vocabulary {
  std::string what;     // "job"
  std::string example;  // of a definition: "web --memory 8G -- python serve.py"
};

// The first word, one of the actions. Nothing: help is wanted.
Result<std::optional<std::string>> parse_action(const Vocabulary& vocabulary, const Words& words);
// `words` behind the action, up to `--`: the action's options, and as many names as the table of
// commands says, mostly one. Fills `typed`, and `program` with the options that programs share.
Result<void> parse_named(const Vocabulary& vocabulary, const Words& words, Raw& typed,
                         ProgramOptions& program);
// Of an action that is about one program.
Result<void> check_name(const Vocabulary& vocabulary, const ProgramOptions& program);
// Of a definition. `update`: may leave the command out.
Result<void> check_definition(const Vocabulary& vocabulary, const ProgramOptions& program,
                              bool update);

}  // namespace gpurota::cli
