// `gpurota job export` and `apply`: the jobs as a file.
#include "base/text.h"
#include "cli/args/program_commands.h"
#include "cli/jobs/job_file.h"
#include "cli/text/output.h"
#include "proto/codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include <unistd.h>

namespace gpurota::cli {
namespace {

// The job of this name; null: there is none.
const proto::Job* find_job(const std::vector<proto::Job>& jobs, const std::string& name) {
  const auto there = std::find_if(jobs.begin(), jobs.end(),
                                  [&name](const proto::Job& each) { return each.name == name; });
  return there == jobs.end() ? nullptr : &*there;
}

// A variable without a value keeps the value that the job has. The value of a new variable is taken
// from this environment.
Result<void> fill_in(std::vector<proto::JobDefinition>& jobs, const std::vector<proto::Job>& known,
                     const std::string& file) {
  for (proto::JobDefinition& job : jobs) {
    const proto::Job* const there = find_job(known, job.name);
    std::vector<std::string> kept;
    for (const std::string& name : job.variables) {
      const bool has =
          there != nullptr && std::find(there->variables.begin(), there->variables.end(), name) !=
                                  there->variables.end();
      const char* const value = std::getenv(name.c_str());
      if (has) {
        kept.push_back(name);
      } else if (value != nullptr) {
        job.environment.push_back({name, value});
      } else {
        return fail(
            Code::kInvalid,
            fmt::format("{}: job {}: the variable {} has no value: set it in your environment, or "
                        "write it into the file ('gpurota job export --with-secrets' does)",
                        display_text(file), display_text(job.name, 64), display_text(name, 64)));
      }
    }
    job.variables = std::move(kept);
  }
  return {};
}

Result<void> check_all(client::Connection& connection,
                       const std::vector<proto::JobDefinition>& jobs,
                       const std::vector<proto::Job>& known) {
  for (const proto::JobDefinition& job : jobs) {
    const proto::Job* const there = find_job(known, job.name);
    if (const auto possible = check_options(connection, job.options, there); !possible) {
      return fail(possible.error().code,
                  fmt::format("job {}: {}", display_text(job.name, 64), possible.error().message));
    }
  }
  return {};
}

Result<proto::ApplyJobs::Reply> apply(const Context& context, const std::string& path) {
  const std::string file = path == "-" ? "standard input" : path;
  GPUROTA_ASSIGN_OR_RETURN(const std::string text, read_text(path));
  std::string warning;
  GPUROTA_ASSIGN_OR_RETURN(auto jobs, parse_job_file(text, file, &warning));
  if (!warning.empty()) complain(warning);
  GPUROTA_ASSIGN_OR_RETURN(client::Connection connection, context.connect());
  GPUROTA_ASSIGN_OR_RETURN(
      const auto known, connection.call(proto::ListJobs{std::nullopt, std::to_string(::getuid())}));
  GPUROTA_TRY(fill_in(jobs, known.jobs, file));
  GPUROTA_TRY(check_all(connection, jobs, known.jobs));
  proto::ApplyJobs call{std::move(jobs)};
  if (const std::size_t bytes = proto::call_json(call).size(); bytes > proto::kMaxCallBytes) {
    return fail(
        Code::kLimit,
        fmt::format(
            "{} is too long to be applied at once ({} KiB of {}): split it into several files",
            display_text(file), bytes / 1024, proto::kMaxCallBytes / 1024));
  }
  return connection.call(call);
}

}  // namespace

int job_export(const Context& context, const JobOptions& options) {
  proto::ExportJobs call;
  if (!options.name.empty()) call.name = options.name;
  call.user = options.user;
  if (options.secrets) call.secrets = true;
  auto connection = context.connect();
  if (!connection) return failed(connection.error());
  const auto reply = connection->call(call);
  if (!reply) return failed(reply.error());
  return shown(job_file_text(reply->jobs));
}

int job_apply(const Context& context, const JobOptions& options) {
  const auto reply = apply(context, options.name);
  if (!reply) return failed(reply.error());
  std::string text;
  for (const proto::JobChange& each : reply->changes) {
    text +=
        fmt::format("{}{} {}", text.empty() ? "" : "\n", each.change, display_text(each.name, 64));
  }
  return text.empty() ? 0 : done(context, text);
}

}  // namespace gpurota::cli
