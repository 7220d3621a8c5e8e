// `gpurota job`: asks the daemon, and shows what it says.
#include "cli/command_parts.h"
#include "cli/job_view.h"
#include "cli/output.h"
#include "proto/codec.h"

namespace gpurota::cli {
namespace {

Result<proto::AddJob> add_call(const JobOptions& options) {
  proto::AddJob call;
  call.name = options.name;
  call.command = options.command;
  call.options = options.run_options;
  call.restart = options.restart;
  if (!options.after.empty()) call.after = options.after;
  GPUROTA_ASSIGN_OR_RETURN(call.workdir, absolute_workdir(options.workdir));
  GPUROTA_ASSIGN_OR_RETURN(call.environment,
                           read_variables(options.variable_files, options.variables));
  GPUROTA_TRY(check_text(call.command));
  GPUROTA_TRY(check_text(call.options));
  GPUROTA_TRY(check_text(call.environment));
  GPUROTA_TRY(check_text(std::vector<std::string>{*call.workdir}));
  return call;
}

int add(const Context& context, const JobOptions& options) {
  const auto call = add_call(options);
  if (!call) return failed(call.error());
  const auto reply = ask_daemon(context, *call);
  if (!reply) return failed(reply.error());
  if (context.verbose) complain("added " + reply->job.name);
  return 0;
}

int list(const Context& context, const JobOptions& options) {
  proto::ListJobs call;
  call.user = options.user;
  if (!options.name.empty()) call.name = options.name;
  const auto reply = ask_daemon(context, call);
  if (!reply) return failed(reply.error());
  if (options.json) return shown(proto::document_json<proto::ListJobs>(*reply));
  const Look look{terminal_width(), wants_colour()};
  if (options.action == "show") return shown(job_text(reply->jobs.at(0)));
  return shown(jobs_text(reply->jobs, look));
}

int logs(const Context& context, const JobOptions& options) {
  proto::ReadJobLog call{options.name, options.user, 16 << 20};
  const auto reply = ask_daemon(context, call);
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
  const auto reply = ask_daemon(context, call);
  return reply ? 0 : failed(reply.error());
}

}  // namespace gpurota::cli
