// `gpurota job`: asks the daemon, and shows what it says.
#include "base/text.h"
#include "cli/commands.h"
#include "cli/job_view.h"
#include "cli/output.h"
#include "proto/codec.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include <unistd.h>

namespace gpurota::cli {
namespace {

template <class Method>
Result<typename Method::Reply> ask(const Context& context, const Method& params) {
  GPUROTA_ASSIGN_OR_RETURN(client::Connection connection, context.connect());
  return connection.call(params);
}

// "NAME=VALUE" on each line; empty lines and those that begin with # mean nothing.
Result<void> read_variables(const std::string& path, std::vector<proto::Variable>& out) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"),
                                                             &std::fclose);
  if (!file) return fail_errno("cannot open " + display_text(path), errno);
  char* line = nullptr;
  std::size_t room = 0;
  ssize_t length = 0;
  Result<void> result;
  while (result && (length = ::getline(&line, &room, file.get())) >= 0) {
    std::string text(line, static_cast<std::size_t>(length));
    if (!text.empty() && text.back() == '\n') text.pop_back();
    if (text.empty() || text.front() == '#') continue;
    const auto equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      result = fail(Code::kInvalid, display_text(path) + ": a line is not NAME=VALUE");
    } else {
      out.push_back({text.substr(0, equals), text.substr(equals + 1)});
    }
  }
  std::free(line);
  return result;
}

Result<std::string> workdir_of(const JobOptions& options) {
  char here[4096];
  if (::getcwd(here, sizeof here) == nullptr) return fail_errno("cannot tell where we are", errno);
  if (!options.workdir) return std::string(here);
  return options.workdir->starts_with("/") ? *options.workdir
                                           : std::string(here) + "/" + *options.workdir;
}

// What is executed must arrive as it is.
Result<void> check_text(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (valid_utf8(word) == word) continue;
    return fail(Code::kInvalid, fmt::format("'{}' is not UTF-8: put it into a script, and add that",
                                            display_text(word, 60)));
  }
  return {};
}

Result<proto::AddJob> add_call(const JobOptions& options) {
  proto::AddJob call;
  call.name = options.name;
  call.command = options.command;
  call.options = options.run_options;
  call.restart = options.restart;
  if (!options.after.empty()) call.after = options.after;
  GPUROTA_ASSIGN_OR_RETURN(call.workdir, workdir_of(options));
  for (const std::string& path : options.variable_files) {
    GPUROTA_TRY(read_variables(path, call.environment));
  }
  for (const std::string& name : options.variables) {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) {
      return fail(Code::kInvalid,
                  fmt::format("--env {}: you have no such variable", display_text(name, 60)));
    }
    call.environment.push_back({name, value});
  }
  std::vector<std::string> all = call.command;
  all.insert(all.end(), call.options.begin(), call.options.end());
  for (const proto::Variable& variable : call.environment) all.push_back(variable.value);
  all.push_back(*call.workdir);
  GPUROTA_TRY(check_text(all));
  return call;
}

int add(const Context& context, const JobOptions& options) {
  const auto call = add_call(options);
  if (!call) return failed(call.error());
  const auto reply = ask(context, *call);
  if (!reply) return failed(reply.error());
  if (context.verbose) complain("added " + reply->job.name);
  return 0;
}

int list(const Context& context, const JobOptions& options) {
  proto::ListJobs call;
  call.user = options.user;
  if (!options.name.empty()) call.name = options.name;
  const auto reply = ask(context, call);
  if (!reply) return failed(reply.error());
  if (options.json) return shown(proto::document_json<proto::ListJobs>(*reply));
  const Look look{terminal_width(), wants_colour()};
  if (options.action == "show") return shown(job_text(reply->jobs.at(0)));
  return shown(jobs_text(reply->jobs, look));
}

int logs(const Context& context, const JobOptions& options) {
  proto::ReadJobLog call{options.name, options.user, 16 << 20};
  const auto reply = ask(context, call);
  if (!reply) return failed(reply.error());
  std::string_view text = reply->text;
  if (options.lines) text = last_lines(text, *options.lines);
  return shown(text);
}

}  // namespace

int job(const Context& context, const JobOptions& options) {
  if (options.action == "add") return add(context, options);
  if (options.action == "list" || options.action == "show") return list(context, options);
  if (options.action == "logs") return logs(context, options);
  proto::ControlJob call{options.name, options.user, options.action, {}};
  if (options.force) call.force = true;
  const auto reply = ask(context, call);
  return reply ? 0 : failed(reply.error());
}

}  // namespace gpurota::cli
