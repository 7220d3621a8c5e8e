// reserve, queue, cancel, explain, drain and undrain.
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/queue/alternatives.h"
#include "cli/queue/booking_commands.h"
#include "cli/queue/calendar_text.h"
#include "cli/queue/find_named.h"
#include "cli/queue/queue_text.h"
#include "cli/queue/waiting.h"
#include "cli/run/environment.h"
#include "cli/site/shell_watch.h"
#include "cli/text/done_text.h"
#include "cli/text/output.h"
#include "cli/text/ps_doctor_text.h"
#include "proto/codec.h"

#include <fmt/format.h>

#include <unistd.h>

namespace gpurota::cli {
namespace {

// `what`: the text about what was done.
template <class Method>
int call_once(const Context& context, const Method& call, const std::string& what) {
  auto connection = context.connect();
  if (!connection) return failed(connection.error());
  const auto reply = connection->call(call);
  return reply ? done(context, what) : failed(reply.error());
}

// Chooses bookings in the way in which explained() chooses requests.
std::vector<proto::Booking> explained_bookings(const Explanation& what,
                                               const proto::Status::Reply& status) {
  std::vector<proto::Booking> chosen = status.bookings.value_or(std::vector<proto::Booking>());
  const bool all = !what.request && !what.lease;
  std::erase_if(chosen, [&](const proto::Booking& each) {
    return all ? each.uid != what.uid : each.request_id != what.request;
  });
  return chosen;
}

// A lease that has ended is still in the events.
int explain_ended(client::Connection& connection, const ExplainOptions& options,
                  const Error& not_found) {
  if (!options.lease || options.json) return failed(not_found);
  const auto events = connection.call(proto::Events{.lease_id = options.lease});
  if (!events) return failed(not_found);
  const std::string text = ended_text(*options.lease, events->events, now());
  return text.empty() ? failed(not_found) : shown(text);
}

}  // namespace

int reserve(const Context& context, const ReserveOptions& given) {
  if (given.at) return book(context, given);
  ReserveOptions options = given;
  const auto until = time_until(given.until, now());
  if (!until) return misused(until.error());
  if (*until) options.lasts = *until;
  const client::Location location = context.location();
  auto connection = client::connect(location);
  if (!connection) return failed(connection.error());
  const auto reply =
      obtain(location, *connection, {options, "reservation", {}, options.take_over, context.quiet});
  if (!reply) return shown_without_lease(reply.error(), kExitFailed);
  if (reply->preload) {
    const auto usable = check_preload(*reply->preload);
    if (!usable) complain(display_lines(usable.error().message));
  }
  if (const std::string warning = oversize_warning(reply->lease); !warning.empty()) {
    complain("warning: " + warning);
  }
  if (options.is_short) return shown(short_text(reply->lease));
  if (!context.quiet) complain(reservation_text(reply->lease, now()));
  if (options.json) return shown(proto::document_json<proto::Acquire>(*reply));
  const int code = shown(export_text(*reply, ::environ));
  watch_for_shell(location, reply->lease.lease_id);
  return code;
}

int queue(const Context& context, const QueueOptions& options) {
  auto connection = context.connect();
  if (!connection) return failed(connection.error());
  const auto uid = uid_of(options.whose);
  if (!uid) return failed(uid.error());
  auto reply = connection->call(proto::ListRequests{});
  if (!reply) return failed(reply.error());
  if (*uid) keep_only(*reply, **uid);
  if (options.json) return shown(proto::document_json<proto::ListRequests>(*reply));
  if (*uid && reply->requests.empty()) return shown(has_text(options.whose) + " no request\n");
  return shown(queue_text(*reply, terminal_layout(), now()));
}

// Cancels one after the other. The exit status is that of the last error.
int cancel(const Context& context, const CancelOptions& options) {
  auto connection = context.connect();
  if (!connection) return failed(connection.error());
  int code = kExitOk;
  std::string cancelled;
  for (const RequestId id : options.requests) {
    const auto reply = connection->call(
        proto::Cancel{id, sendable(options.reason, "the reason", proto::kMaxNoteBytes)});
    if (!reply) {
      code = failed(reply.error());
    } else {
      cancelled += (cancelled.empty() ? "cancelled " : ", ") + to_string(id);
    }
  }
  if (!cancelled.empty()) (void)done(context, cancelled);
  return code;
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
  Explanation what{options.request, options.lease, ::geteuid()};
  if (!options.name.empty()) {
    if (const auto id = find_named(requests->requests, options.name, what.uid)) what.request = *id;
    const auto lease = find_named(status->leases, options.name, what.uid);
    if (!what.request && !lease) return failed(neither_request_nor_lease(options.name));
    if (!what.request) what.lease = *lease;
  }
  auto chosen = explained(what, requests->requests, *status, *turns);
  const auto bookings = explained_bookings(what, *status);
  if (!chosen && !bookings.empty()) chosen = Explained{};
  if (!chosen) return explain_ended(*connection, options, chosen.error());
  for (const proto::Request& request : chosen->requests.requests) {
    auto ways = ask_alternatives(*connection, {.request_id = request.request_id});
    for (proto::Alternative& way : ways) {
      chosen->alternatives.alternatives.push_back(std::move(way));
    }
  }
  chosen->status.bookings = bookings;
  if (options.json) return shown(explained_json(*chosen));
  return shown(explain_text(*chosen, requests->requests, what.uid, now()));
}

int drain(const Context& context, const DrainOptions& options) {
  const std::string gpus = gpus_text(options.gpu_ids);
  if (!options.drain) {
    return call_once(context, proto::Undrain{options.gpu_ids}, "back in service: " + gpus);
  }
  return call_once(context, proto::Drain{options.gpu_ids, options.reason},
                   fmt::format("out of service: {}; current leases continue", gpus));
}

}  // namespace gpurota::cli
