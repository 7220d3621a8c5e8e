// `gpurota filler`: calls the daemon, and prints the answer.
#include "base/text.h"
#include "cli/args/program_commands.h"
#include "cli/jobs/filler_view.h"
#include "cli/queue/waiting.h"
#include "cli/site/check_start.h"

namespace gpurota::cli {
namespace {

Result<proto::AddFiller> add_call(const FillerOptions& options) {
  proto::AddFiller call;
  GPUROTA_TRY(define(call, options));
  if (!options.gpu_ids.empty()) call.gpu_ids = options.gpu_ids;
  call.instances = options.instances;
  call.memory = options.memory;
  call.of_free_percent = options.of_free;
  if (options.idle_after) call.idle_seconds = options.idle_after->count();
  if (options.grace) call.grace_seconds = options.grace->count();
  call.on_yield = options.on_yield;
  return call;
}

int add(const Context& context, const FillerOptions& options) {
  const auto call = add_call(options);
  if (!call) return failed(call.error());
  const auto note = check_start({"filler", call->command, call->workdir, call->environment});
  if (!note) return failed(note.error());
  if (!note->empty()) complain(*note);
  const auto reply = ask_daemon(context, *call);
  if (!reply) return failed(reply.error());
  return done(context, "added filler " + display_text(reply->filler.name, 64));
}

int logs(const Context& context, const FillerOptions& options) {
  const auto reply =
      ask_daemon(context, proto::ReadFillerLog{options.name, options.user, 16 << 20});
  if (!reply) return failed(reply.error());
  return show_log(options, reply->text, "gpurota filler list");
}

}  // namespace

int filler(const Context& context, const FillerOptions& options) {
  if (options.action == "add") return add(context, options);
  if (options.action == "list") {
    return list_programs<proto::ListFillers>(context, options, [](const auto& reply) {
      return fillers_text(reply.fillers, terminal_layout(), now());
    });
  }
  if (options.action == "logs") return logs(context, options);
  proto::ControlFiller call{options.name, options.user, options.action, {}};
  call.reason = sendable(options.reason, "the reason", proto::kMaxNoteBytes);
  return control_program(context, call, "filler");
}

}  // namespace gpurota::cli
