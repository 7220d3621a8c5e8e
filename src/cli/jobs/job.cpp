// `gpurota job`: calls the daemon, and prints the answer.
#include "base/text.h"
#include "cli/args/option_parser.h"
#include "cli/args/program_commands.h"
#include "cli/exit_codes.h"
#include "cli/jobs/command_lines.h"
#include "cli/jobs/job_begun.h"
#include "cli/jobs/job_update.h"
#include "cli/jobs/job_view.h"
#include "cli/queue/waiting.h"
#include "cli/site/check_start.h"

#include <fmt/format.h>

#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace gpurota::cli {
namespace {

// The names in an option that may be repeated; commas separate names. Empty names are left out.
// Nothing: the option was not given.
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
  call.array = options.array;
  call.at_once = options.at_once;
  if (options.action == "add-each") {
    const std::string file = options.file == "-" ? "standard input" : options.file;
    GPUROTA_ASSIGN_OR_RETURN(const std::string text, read_text(options.file));
    GPUROTA_ASSIGN_OR_RETURN(call.each, parse_command_lines(text, file));
    for (const proto::ItemCommand& each : *call.each) GPUROTA_TRY(check_text(each.words));
  }
  call.options = options.run_options;
  call.restart = options.restart;
  call.output = options.output;
  set_what_is_before(call, options);
  GPUROTA_TRY(define(call, options));
  GPUROTA_TRY(check_text(call.options));
  return call;
}

// Whether the commands can be started here. For an array each program is checked once.
Result<void> check_commands(const proto::AddJob& call) {
  std::vector<std::vector<std::string>> commands = {call.command};
  if (call.each) {
    std::set<std::string> programs;
    commands.clear();
    for (const proto::ItemCommand& each : *call.each) {
      if (programs.insert(each.words.front()).second) commands.push_back(each.words);
    }
  }
  for (const auto& command : commands) {
    GPUROTA_ASSIGN_OR_RETURN(const std::string note,
                             check_start({"job", command, call.workdir, call.environment}));
    if (!note.empty()) complain(note);
  }
  return {};
}

// The commands of a job that starts after other jobs are not checked: the other jobs may still have
// to make the program or the folder of this one.
Result<Begun> add_job(const Context& context, const JobOptions& options) {
  GPUROTA_ASSIGN_OR_RETURN(const proto::AddJob call, add_call(options));
  if (!starts_after_others(options)) GPUROTA_TRY(check_commands(call));
  // A single command that is too long is refused when it is sent.
  const std::size_t bytes = call.each ? proto::call_json(call).size() : 0;
  if (bytes > proto::kMaxCallBytes) {
    return fail(
        Code::kLimit,
        fmt::format("the commands and variables are too long ({} KiB of {}): write them into "
                    "a script that chooses by GPUROTA_ARRAY_INDEX, and use --array",
                    bytes / 1024, proto::kMaxCallBytes / 1024));
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
  call.at_once = options.at_once;
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

// All items of the job; `begun`: only those that have begun.
Result<proto::ListJobItems::Reply> items_of(client::Connection& connection, const std::string& name,
                                            const std::optional<std::string>& user, bool begun) {
  proto::ListJobItems call;
  call.name = name;
  call.user = user;
  if (begun) call.begun = true;
  proto::ListJobItems::Reply all;
  do {
    GPUROTA_ASSIGN_OR_RETURN(auto reply, connection.call(call));
    all.items.insert(all.items.end(), std::make_move_iterator(reply.items.begin()),
                     std::make_move_iterator(reply.items.end()));
    call.from = reply.next;
  } while (call.from);
  return all;
}

Result<std::string> items_json(const Context& context, const JobOptions& options) {
  if (options.action == "list") {
    return fail(Code::kInvalid,
                "the items of one job at a time: gpurota job show NAME --items "
                "--json");
  }
  GPUROTA_ASSIGN_OR_RETURN(client::Connection connection, context.connect());
  GPUROTA_ASSIGN_OR_RETURN(const auto items,
                           items_of(connection, options.name, options.user, false));
  return proto::document_json<proto::ListJobItems>(items);
}

Result<std::string> list_text(const Context& context, const JobOptions& options) {
  GPUROTA_ASSIGN_OR_RETURN(client::Connection connection, context.connect());
  proto::ListJobs call;
  call.user = options.user;
  if (!options.name.empty()) call.name = options.name;
  GPUROTA_ASSIGN_OR_RETURN(const auto reply, connection.call(call));
  if (options.json) return proto::document_json<proto::ListJobs>(reply);
  const bool show = options.action == "show";
  std::vector<ListedJob> listed;
  for (const proto::Job& job : reply.jobs) {
    ListedJob& each = listed.emplace_back(ListedJob{job, {}});
    if (!job.items || !(show || options.items)) continue;
    // The items are those of the job's owner, even if the caller is another user.
    const auto items = items_of(connection, job.name, std::to_string(job.uid), true);
    if (items) each.items = items->items;
  }
  return show ? job_text(listed.at(0), now()) : jobs_text(listed, terminal_layout(), now());
}

int list(const Context& context, const JobOptions& options) {
  const auto text =
      options.items && options.json ? items_json(context, options) : list_text(context, options);
  return text ? shown(*text) : failed(text.error());
}

}  // namespace

int job(const Context& context, const JobOptions& options) {
  if (options.action == "add" || options.action == "add-each") return add(context, options);
  if (options.action == "list" || options.action == "show") return list(context, options);
  if (options.action == "logs") return job_logs(context, options);
  if (options.action == "wait") return job_wait(context, options);
  if (options.action == "update") return update(context, options);
  if (options.action == "export") return job_export(context, options);
  if (options.action == "apply") return job_apply(context, options);
  proto::ControlJob call;
  call.name = options.name;
  call.user = options.user;
  // The daemon knows which items run, and which wait.
  call.action = options.action == "cancel" ? "stop" : options.action;
  call.item = options.item;
  if (options.failed) call.unfinished = true;
  if (options.force) call.force = true;
  if (!options.others.empty()) call.others = options.others;
  call.reason = sendable(options.reason, "the reason", proto::kMaxNoteBytes);
  if (!options.item && !options.failed) {
    return control_program(context, call, "job", options.others);
  }
  const auto reply = ask_daemon(context, call);
  if (!reply) return failed(reply.error());
  return done(context, options.item ? controlled_text(fmt::format("item {} of job", *options.item),
                                                      call.action, call.name)
                                    : controlled_text("items of job", call.action, call.name));
}

}  // namespace gpurota::cli
