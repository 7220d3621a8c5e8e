// What the commands have in common that hand a program to the daemon to be run later: jobs and fillers.
#pragma once

#include "base/result.h"
#include "cli/commands.h"
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

// What is to be run with these options of `gpurota run` is refused now, if it would be at every start. `known`: the job
// that there is; what that asks for already is not refused.
Result<void> check_options(client::Connection& connection, const std::vector<std::string>& options,
                           const proto::Job* known = nullptr);
// A file of at most 1 MiB; "-" is standard input.
Result<std::string> read_text(const std::string& path);
// The variables of these files ("NAME=VALUE" on each line; empty lines and those that begin with # mean
// nothing; no quotes), then those of our environment with these names.
Result<std::vector<proto::Variable>> read_variables(const std::vector<std::string>& files,
                                                    const std::vector<std::string>& names);
// As given, from here on; else here.
Result<std::string> absolute_workdir(const std::optional<std::string>& given);
// What is executed must arrive as it is: kInvalid unless all is UTF-8.
Result<void> check_text(const std::vector<std::string>& words);
Result<void> check_text(const std::vector<proto::Variable>& variables);
std::string_view last_lines(std::string_view text, int lines);
// What one's own program prints is one's own; what somebody else's (`user`) prints is made safe for a
// terminal.
std::string printable_log(std::string_view text, const std::optional<std::string>& user);

}  // namespace gpurota::cli
