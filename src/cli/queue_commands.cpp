// reserve, queue, cancel, explain, drain and undrain.
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "cli/queue_text.h"
#include "cli/run/environment.h"
#include "cli/views.h"
#include "cli/waiting.h"
#include "proto/codec.h"

#include <fmt/format.h>

#include <unistd.h>

namespace gpurota::cli {
namespace {

// Tells one by one; the exit status is that of the last error.
template <class Method>
int call_each(const Context& context, const std::vector<Method>& calls) {
  auto connection = context.connect();
  if (!connection) return failed(connection.error());
  int code = kExitOk;
  for (const Method& call : calls) {
    if (const auto reply = connection->call(call); !reply) code = failed(reply.error());
  }
  return code;
}

}  // namespace

int reserve(const Context& context, const ReserveOptions& options) {
  const client::Location location = context.location();
  auto connection = client::connect(location);
  if (!connection) return failed(connection.error());
  const auto reply = obtain(location, *connection, {options, "reservation", {}, options.take_over});
  if (!reply) return failed(reply.error());
  if (reply->preload) {
    const auto usable = check_preload(*reply->preload);
    if (!usable) complain(display_lines(usable.error().message));
  }
  if (const std::string warning = oversize_warning(reply->lease); !warning.empty()) {
    complain("warning: " + warning);
  }
  if (options.is_short) return shown(short_text(reply->lease));
  complain(reservation_text(reply->lease, now()));
  return shown(export_text(*reply));
}

int queue(const Context& context, const QueueOptions& options) {
  auto connection = context.connect();
  if (!connection) return failed(connection.error());
  const auto reply = connection->call(proto::ListRequests{});
  if (!reply) return failed(reply.error());
  if (options.json) return shown(proto::document_json<proto::ListRequests>(*reply));
  return shown(queue_text(*reply, {terminal_width(), wants_colour()}, now()));
}

int cancel(const Context& context, const CancelOptions& options) {
  std::vector<proto::Cancel> calls;
  for (const RequestId id : options.requests) calls.push_back({id});
  return call_each(context, calls);
}

int explain(const Context& context, const ExplainOptions& options) {
  auto connection = context.connect();
  if (!connection) return failed(connection.error());
  const auto requests = connection->call(proto::ListRequests{});
  if (!requests) return failed(requests.error());
  const auto status = connection->call(proto::Status{});
  if (!status) return failed(status.error());
  const auto turns = connection->call(proto::ListTurns{});
  if (!turns) return failed(turns.error());
  const Explanation what{options.request, options.lease, ::geteuid()};
  const auto text = explain_text(what, requests->requests, *status, *turns, now());
  return text ? shown(*text) : failed(text.error());
}

int drain(const Context& context, const DrainOptions& options) {
  if (options.drain) {
    return call_each<proto::Drain>(context, {{options.gpu_ids, options.reason}});
  }
  return call_each<proto::Undrain>(context, {{options.gpu_ids}});
}

}  // namespace gpurota::cli
