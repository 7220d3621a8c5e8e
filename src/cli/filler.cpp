// `gpurota filler`: asks the daemon, and shows what it says.
#include "base/text.h"
#include "cli/command_parts.h"
#include "cli/filler_view.h"
#include "cli/output.h"
#include "proto/codec.h"

#include <fmt/format.h>

namespace gpurota::cli {
namespace {

Result<proto::AddFiller> add_call(const FillerOptions& options) {
  proto::AddFiller call;
  call.name = options.name;
  call.command = options.command;
  if (!options.gpu_ids.empty()) call.gpu_ids = options.gpu_ids;
  call.instances = options.instances;
  call.memory = options.memory;
  if (options.idle_after) call.idle_seconds = options.idle_after->count();
  if (options.grace) call.grace_seconds = options.grace->count();
  call.on_yield = options.on_yield;
  GPUROTA_ASSIGN_OR_RETURN(call.workdir, absolute_workdir(options.workdir));
  GPUROTA_ASSIGN_OR_RETURN(call.environment,
                           read_variables(options.variable_files, options.variables));
  GPUROTA_TRY(check_text(call.command));
  GPUROTA_TRY(check_text(call.environment));
  GPUROTA_TRY(check_text(std::vector<std::string>{*call.workdir}));
  return call;
}

int add(const Context& context, const FillerOptions& options) {
  const auto call = add_call(options);
  if (!call) return failed(call.error());
  const auto reply = ask_daemon(context, *call);
  if (!reply) return failed(reply.error());
  if (context.verbose) complain("added " + reply->filler.name);
  return 0;
}

int list(const Context& context, const FillerOptions& options) {
  proto::ListFillers call;
  call.user = options.user;
  if (!options.name.empty()) call.name = options.name;
  const auto reply = ask_daemon(context, call);
  if (!reply) return failed(reply.error());
  if (options.json) return shown(proto::document_json<proto::ListFillers>(*reply));
  return shown(fillers_text(reply->fillers, terminal_look(), now()));
}

int logs(const Context& context, const FillerOptions& options) {
  const auto reply =
      ask_daemon(context, proto::ReadFillerLog{options.name, options.user, 16 << 20});
  if (!reply) return failed(reply.error());
  if (reply->text.empty()) {
    complain(fmt::format("no output yet: 'gpurota filler list {}' shows its state",
                         display_text(options.name, 64)));
  }
  std::string_view text = reply->text;
  if (options.lines) text = last_lines(text, *options.lines);
  return shown(printable_log(text, options.user));
}

}  // namespace

int filler(const Context& context, const FillerOptions& options) {
  if (options.action == "add") return add(context, options);
  if (options.action == "list") return list(context, options);
  if (options.action == "logs") return logs(context, options);
  const auto reply =
      ask_daemon(context, proto::ControlFiller{options.name, options.user, options.action});
  return reply ? 0 : failed(reply.error());
}

}  // namespace gpurota::cli
