// `gpurota job`: asks the daemon, and shows what it says.
#include "base/text.h"
#include "cli/args/option_parser.h"
#include "cli/args/program_commands.h"
#include "cli/exit_codes.h"
#include "cli/jobs/job_begun.h"
#include "cli/jobs/job_update.h"
#include "cli/jobs/job_view.h"
#include "cli/queue/waiting.h"
#include "cli/site/check_start.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

namespace gpurota::cli {
namespace {

// Names between commas, of repeated options alike; an empty one names none. Not said: nothing.
std::optional<std::vector<std::string>> names_in(const std::vector<std::string>& said) {
  if (said.empty()) return std::nullopt;
  std::vector<std::string> names = split_commas(said);
  std::erase(names, "");
  return names;
}

// `Call`: AddJob or UpdateJob.
template <class Call>
void set_what_is_before(Call& call, const JobOptions& options) {
  if (options.old_after) {
    complain(
        "--after is called --boot-after now, and will be removed: it orders starts after a reboot. "
        "To start a job when another one has ended: --after-success, --after-end");
  }
  call.after = names_in(options.boot_after);
  call.after_success = names_in(options.after_success);
  call.after_end = names_in(options.after_end);
  call.tty = options.tty;
}

bool starts_after_others(const JobOptions& options) {
  return !options.boot_after.empty() || !options.after_success.empty() ||
         !options.after_end.empty();
}

Result<proto::AddJob> add_call(const JobOptions& options) {
  proto::AddJob call;
  call.options = options.run_options;
  call.restart = options.restart;
  call.output = options.output;
  set_what_is_before(call, options);
  GPUROTA_TRY(define(call, options));
  GPUROTA_TRY(check_text(call.options));
  return call;
}

// What a job before it makes may not be there yet.
Result<Begun> add_job(const Context& context, const JobOptions& options) {
  GPUROTA_ASSIGN_OR_RETURN(const proto::AddJob call, add_call(options));
  if (!starts_after_others(options)) {
    GPUROTA_ASSIGN_OR_RETURN(const std::string note,
                             check_start({"job", call.command, call.workdir, call.environment}));
    if (!note.empty()) complain(note);
  }
  GPUROTA_ASSIGN_OR_RETURN(client::Connection connection, context.connect());
  GPUROTA_TRY(check_options(connection, call.options));
  GPUROTA_ASSIGN_OR_RETURN(const auto reply, connection.call(call));
  return await_begin(connection, reply.job);
}

int add(const Context& context, const JobOptions& options) {
  const auto begun = add_job(context, options);
  if (!begun) return failed(begun.error());
  const std::string text = "added job " + begun->text;
  if (!begun->failed) return done(context, text);
  complain(text);
  return kExitFailed;
}

Result<ChangedOptions> update_call(const proto::Job& job, const JobOptions& options) {
  ChangedOptions change;
  if (!options.run_options.empty()) {
    GPUROTA_ASSIGN_OR_RETURN(change, change_options(job.options, options.run_options));
  }
  proto::UpdateJob& call = change.call;
  call.name = options.name;
  call.user = options.user;
  call.reason = sendable(options.reason, "the reason", proto::kMaxNoteBytes);
  call.restart = options.restart;
  call.output = options.output;
  if (!options.command.empty()) call.command = options.command;
  set_what_is_before(call, options);
  if (options.workdir) {
    GPUROTA_ASSIGN_OR_RETURN(call.workdir, absolute_workdir(options.workdir));
  }
  GPUROTA_ASSIGN_OR_RETURN(const auto environment,
                           read_variables(options.variable_files, options.variables));
  if (!environment.empty()) call.environment = environment;
  GPUROTA_TRY(check_text(options.command));
  GPUROTA_TRY(check_text(options.run_options));
  GPUROTA_TRY(check_text(environment));
  change.later = change.later || call.command || call.environment || call.workdir;
  return change;
}

int show_update(const Context& context, const JobOptions& options, const ChangedOptions& change,
                const proto::UpdateJob::Reply& reply) {
  const std::string& state = reply.job.state;
  const bool on = state == "running" || state == "waiting" || state == "stopping";
  if (on && (change.later || (change.now && !reply.live))) {
    complain(fmt::format(
        "the change takes effect at the job's next start; to apply it now: gpurota job restart {}",
        options.name));
    return 0;
  }
  return done(context, "updated job " + display_text(options.name, 64) +
                           (on && change.now ? "; the change is in effect" : ""));
}

int update(const Context& context, const JobOptions& options) {
  auto connection = context.connect();
  if (!connection) return failed(connection.error());
  const auto known = connection->call(proto::ListJobs{options.name, options.user});
  if (!known) return failed(known.error());
  const proto::Job& job = known->jobs.at(0);
  const auto change = update_call(job, options);
  if (!change) {
    return change.error().code == Code::kInvalid ? misused(change.error()) : failed(change.error());
  }
  if (change->call.options) {
    const auto possible = check_options(*connection, *change->call.options, &job);
    if (!possible) return failed(possible.error());
  }
  const auto reply = connection->call(change->call);
  return reply ? show_update(context, options, *change, *reply) : failed(reply.error());
}

int list(const Context& context, const JobOptions& options) {
  return list_programs<proto::ListJobs>(context, options, [&options](const auto& reply) {
    if (options.action == "show") return job_text(reply.jobs.at(0), now());
    return jobs_text(reply.jobs, terminal_layout(), now());
  });
}

}  // namespace

int job(const Context& context, const JobOptions& options) {
  if (options.action == "add") return add(context, options);
  if (options.action == "list" || options.action == "show") return list(context, options);
  if (options.action == "logs") return job_logs(context, options);
  if (options.action == "wait") return job_wait(context, options);
  if (options.action == "update") return update(context, options);
  if (options.action == "export") return job_export(context, options);
  if (options.action == "apply") return job_apply(context, options);
  proto::ControlJob call;
  call.name = options.name;
  call.user = options.user;
  call.action = options.action;
  if (options.force) call.force = true;
  if (!options.others.empty()) call.others = options.others;
  call.reason = sendable(options.reason, "the reason", proto::kMaxNoteBytes);
  return control_program(context, call, "job", options.others);
}

}  // namespace gpurota::cli
