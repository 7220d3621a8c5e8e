// The common part of the commands that define programs for the daemon: `gpurota job` and `gpurota
// filler`.
#pragma once

#include "base/result.h"
#include "cli/commands.h"
#include "cli/text/done_text.h"
#include "cli/text/output.h"
#include "proto/codec.h"
#include "proto/methods.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpurota::cli {

// Connects, calls, and returns the answer.
template <class Method>
Result<typename Method::Reply> ask_daemon(const Context& context, const Method& params) {
  GPUROTA_ASSIGN_OR_RETURN(client::Connection connection, context.connect());
  return connection.call(params);
}

// Refuses options of `gpurota run` that would be refused at every start of the job. `known`: the
// existing job, whose present options are accepted without a check.
Result<void> check_options(client::Connection& connection, const std::vector<std::string>& options,
                           const proto::Job* known = nullptr);
// A file of at most 1 MiB; "-" is standard input.
Result<std::string> read_text(const std::string& path);
// The variables in these files ("NAME=VALUE" on each line; empty lines and lines that begin with #
// are ignored; no quotes), then the variables of our environment with these names.
Result<std::vector<proto::Variable>> read_variables(const std::vector<std::string>& files,
                                                    const std::vector<std::string>& names);
// `given`, made absolute; without it the current directory.
Result<std::string> absolute_workdir(const std::optional<std::string>& given);
// Commands and variables must arrive unchanged: kInvalid unless all are UTF-8.
Result<void> check_text(const std::vector<std::string>& words);
Result<void> check_text(const std::vector<proto::Variable>& variables);
std::string_view last_lines(std::string_view text, int lines);
// The output of the caller's own program is unchanged; that of another user's (`user`) is made safe
// for a terminal.
std::string printable_log(std::string_view text, const std::optional<std::string>& user);

// The part of a definition that comes from the caller's process.
struct Surroundings {
  std::string workdir;
  std::vector<proto::Variable> environment;
};
// Also kInvalid if the program's command or variables could not arrive unchanged.
Result<Surroundings> read_surroundings(const ProgramOptions& options);

// `Call`: AddJob or AddFiller.
template <class Call>
Result<void> define(Call& call, const ProgramOptions& options) {
  GPUROTA_ASSIGN_OR_RETURN(Surroundings read, read_surroundings(options));
  call.name = options.name;
  call.command = options.command;
  call.workdir = std::move(read.workdir);
  call.environment = std::move(read.environment);
  return {};
}

// `Method`: ListJobs or ListFillers. `text` makes the text of the reply.
template <class Method, class Text>
int list_programs(const Context& context, const ProgramOptions& options, const Text& text) {
  Method call;
  call.user = options.user;
  if (!options.name.empty()) call.name = options.name;
  const auto reply = ask_daemon(context, call);
  if (!reply) return failed(reply.error());
  return shown(options.json ? proto::document_json<Method>(*reply) : text(*reply));
}

// `Method`: ControlJob or ControlFiller. `what`: "job", "filler". `others`: further names in the
// call.
template <class Method>
int control_program(const Context& context, const Method& call, std::string_view what,
                    const std::vector<std::string>& others = {}) {
  const auto reply = ask_daemon(context, call);
  if (!reply) return failed(reply.error());
  std::string text = controlled_text(what, call.action, call.name);
  for (const std::string& other : others) {
    text += "\n" + controlled_text(what, call.action, other);
  }
  return done(context, text);
}

// Prints all of a log, or its last lines. Reports an empty log on standard error; `see`: the
// command that shows the state of the program.
int show_log(const ProgramOptions& options, std::string_view text, const char* see);

}  // namespace gpurota::cli
