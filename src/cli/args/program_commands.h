// The common part of the commands that give the daemon a program to run: `gpurota job` and `gpurota
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

// Connects, calls, and hands the answer on.
template <class Method>
Result<typename Method::Reply> ask_daemon(const Context& context, const Method& params) {
  GPUROTA_ASSIGN_OR_RETURN(client::Connection connection, context.connect());
  return connection.call(params);
}

// Refuses options of `gpurota run` that every start of the job would refuse. `known`: the job that
// there is; options that it has already are not refused.
Result<void> check_options(client::Connection& connection, const std::vector<std::string>& options,
                           const proto::Job* known = nullptr);
// A file of at most 1 MiB; "-" is standard input.
Result<std::string> read_text(const std::string& path);
// The variables of these files ("NAME=VALUE" on each line; empty lines and those that begin with #
// mean nothing; no quotes), then those of our environment with these names.
Result<std::vector<proto::Variable>> read_variables(const std::vector<std::string>& files,
                                                    const std::vector<std::string>& names);
// As given, from here on; else here.
Result<std::string> absolute_workdir(const std::optional<std::string>& given);
// Commands and variables must arrive unchanged: kInvalid unless all is UTF-8.
Result<void> check_text(const std::vector<std::string>& words);
Result<void> check_text(const std::vector<proto::Variable>& variables);
std::string_view last_lines(std::string_view text, int lines);
// The output of one's own program is unchanged; that of another user's (`user`) is made safe for a
// terminal.
std::string printable_log(std::string_view text, const std::optional<std::string>& user);

// The part of a definition that comes from our own process.
struct Surroundings {
  std::string workdir;
  std::vector<proto::Variable> environment;
};
// kInvalid, too, where what is executed could not arrive as it is.
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

// `Method`: ListJobs or ListFillers. `text`: makes the text of its reply.
template <class Method, class Text>
int list_programs(const Context& context, const ProgramOptions& options, const Text& text) {
  Method call;
  call.user = options.user;
  if (!options.name.empty()) call.name = options.name;
  const auto reply = ask_daemon(context, call);
  if (!reply) return failed(reply.error());
  return shown(options.json ? proto::document_json<Method>(*reply) : text(*reply));
}

// ControlJob or ControlFiller; `what`: "job", "filler"; `others`: that the call names, too.
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

// All of a log, or its last lines. Of one without output it says so on standard error; `see`: the
// command that shows the state of the program.
int show_log(const ProgramOptions& options, std::string_view text, const char* see);

}  // namespace gpurota::cli
