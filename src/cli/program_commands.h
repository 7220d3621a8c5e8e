// What `gpurota job` and `gpurota filler` do alike, each in its own words: define a program, list, control, show a log.
#pragma once

#include "cli/command_parts.h"
#include "cli/output.h"
#include "cli/program_args.h"
#include "proto/codec.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpurota::cli {

// What of a definition our surroundings say.
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

// A call that has nothing to show.
template <class Method>
int control_program(const Context& context, const Method& call) {
  const auto reply = ask_daemon(context, call);
  return reply ? 0 : failed(reply.error());
}

// All of a log, or its last lines. `see`: the command that shows the state of a program without output; null: say nothing of that.
int show_log(const ProgramOptions& options, std::string_view text, const char* see);

}  // namespace gpurota::cli
