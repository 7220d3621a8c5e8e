#include "cli/commands.h"

#include "base/text.h"
#include "cli/args/program_commands.h"
#include "cli/exit_codes.h"
#include "cli/queue/booking_commands.h"
#include "cli/queue/waiting.h"
#include "cli/status/status_view.h"
#include "cli/status/status_watch.h"
#include "cli/text/ps_doctor_text.h"
#include "proto/codec.h"
#include "proto/documents.h"
#include "proto/service.h"

#include <fmt/format.h>

namespace gpurota::cli {
int failed(const Error& error) {
  complain(display_lines(error.message));
  return error.code == Code::kNoGpu ? kExitNoGpu : kExitFailed;
}

int misused(const Error& error) {
  complain(display_lines(error.message));
  return kExitUsage;
}

int shown(std::string_view text) {
  const auto printed = print(text);
  return printed ? kExitOk : failed(printed.error());
}

int done(const Context& context, std::string_view what) {
  // The command has succeeded, even if its message cannot be printed.
  if (!context.quiet) (void)print(fmt::format("{}\n", what));
  return kExitOk;
}

int status(const Context& context, const StatusOptions& options) {
  if (options.watch) return watch_status(context, options);
  auto reply = ask_daemon(context, proto::Status{});
  if (!reply) return failed(reply.error());
  if (options.memory_threshold) apply_threshold(*reply, *options.memory_threshold);
  const auto uid = uid_of(options.form.whose);
  if (!uid) return failed(uid.error());
  if (*uid) keep_only(*reply, **uid);
  if (options.json) return shown(proto::document_json<proto::Status>(*reply));
  return shown(status_picture(*reply, host_name(), options.form, terminal_layout(), now()));
}

int ps(const Context& context, const PsOptions& options) {
  const auto reply = ask_daemon(context, proto::ListProcesses{options.lease});
  if (!reply) return failed(reply.error());
  if (options.json) return shown(proto::document_json<proto::ListProcesses>(*reply));
  return shown(ps_text(*reply, terminal_layout()));
}

namespace {

std::optional<proto::Lease> find_lease(client::Connection& connection, LeaseId id) {
  auto status = connection.call(proto::Status{});
  if (!status) return std::nullopt;
  for (proto::Lease& lease : status->leases) {
    if (lease.lease_id == id) return std::move(lease);
  }
  return std::nullopt;
}

}  // namespace

int update(const Context& context, const UpdateOptions& options) {
  proto::Update call;
  call.lease_id = options.lease;
  call.memory = options.memory;
  call.soft_limit = options.soft_limit;
  call.note = sendable(options.note, "the note", proto::kMaxNoteBytes);
  const auto until = time_until(options.until, now());
  if (!until) return misused(until.error());
  if (const auto lasts = *until ? *until : options.lasts) call.seconds = lasts->count();
  call.priority = options.priority;
  call.quantum = options.quantum;
  if (options.latency) call.latency = to_string(*options.latency);
  call.compute_percent = options.compute;
  call.compute_max_percent = options.compute_max;
  if (options.warning) set_warning(call, *options.warning);
  call.reason = sendable(options.reason, "the reason", proto::kMaxNoteBytes);
  auto connection = context.connect();
  if (!connection) return failed(connection.error());
  std::optional<proto::Lease> before;
  if (options.memory) before = find_lease(*connection, call.lease_id);
  const auto reply = connection->call(call);
  if (!reply) return failed(reply.error());
  const int code = done(context, updated_text(reply->lease, now()));
  const std::string beyond = before ? held_beyond_text(reply->lease, *before) : "";
  if (!beyond.empty()) complain("warning: " + beyond);
  return code;
}

int version(const Context& context, const VersionOptions& options) {
  std::string text = fmt::format("gpurota {}\n", proto::version());
  if (options.client_only) return shown(text);
  const auto info = ask_daemon(context, proto::GetInfo{});
  if (options.json) {
    return shown(proto::joined_json(
        {{"version", fmt::format("\"{}\"", proto::version())},
         {"daemon", info ? proto::document_json<proto::GetInfo>(*info) : std::string()}}));
  }
  if (!info) {
    text += "gpurotad: no answer (see 'gpurota doctor')\n";
  } else {
    text += fmt::format("gpurotad {} (pid {}, uid {})\n", display_text(info->version, 40),
                        info->pid, info->uid);
    text += fmt::format("NVIDIA driver {}\n",
                        info->driver_version ? display_text(*info->driver_version, 40) : "none");
  }
  return shown(text);
}

}  // namespace gpurota::cli
