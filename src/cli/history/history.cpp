// gpurota events, gpurota report.
#include "base/text.h"
#include "cli/args/since.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/history/history_views.h"
#include "cli/text/output.h"
#include "proto/codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace gpurota::cli {
namespace {

// The pause between two attempts to reach a daemon that is being restarted.
constexpr int kRetryMs = 250;

Result<void> print_events(const proto::Events::Reply& reply, bool json, const Layout& layout) {
  std::string text;
  for (const proto::Event& event : reply.events) {
    text += json ? proto::event_json(event) : event_text(event, layout);
  }
  if (reply.missed > 0) {
    complain(fmt::format("{} events are not shown: they came faster than they could be read",
                         reply.missed));
  }
  return text.empty() ? Result<void>() : print(text);
}

// The state of a stream of events, kept over reconnections: where to continue.
struct Stream {
  proto::Events call;
  bool over = false;
};

// Prints the last events so far; `call` then continues after them.
Result<void> print_last(client::Connection& connection, const EventsOptions& options,
                        proto::Events& call) {
  proto::Events once = call;
  once.follow.reset();
  GPUROTA_ASSIGN_OR_RETURN(proto::Events::Reply reply, connection.call(once));
  std::vector<proto::Event>& events = reply.events;
  const auto most = static_cast<std::size_t>(*options.lines);
  if (events.size() > most) {
    events.erase(events.begin(), events.end() - static_cast<std::ptrdiff_t>(most));
  }
  if (!events.empty()) call.after = events.back().event_id;
  return print_events(reply, options.json, terminal_layout());
}

// Prints events until the stream or the connection ends.
Result<void> read_stream(client::Connection& connection, const EventsOptions& options,
                         Stream& stream) {
  GPUROTA_TRY(connection.start_stream(stream.call));
  const Layout layout = terminal_layout();
  while (!stream.over) {
    GPUROTA_ASSIGN_OR_RETURN(const auto answer, connection.next_answer<proto::Events>());
    if (!answer) {
      if (!wait_while_read(connection.fd(), -1)) return {};
      continue;
    }
    GPUROTA_TRY(print_events(answer->reply, options.json, layout));
    if (!answer->reply.events.empty()) stream.call.after = answer->reply.events.back().event_id;
    stream.over = !answer->continues;
  }
  return {};
}

bool is_away(const Error& error) {
  return error.code == Code::kGone || error.code == Code::kUnavailable;
}

// Waits until the daemon answers again. Nothing: nobody reads the output any more.
Result<std::optional<client::Connection>> connect_again(const Context& context) {
  complain("gpurotad is gone; waiting for it to come back");
  while (wait_while_read(-1, kRetryMs)) {
    auto connection = context.connect();
    if (connection) return std::optional(std::move(*connection));
    if (!is_away(connection.error())) return tl::unexpected(connection.error());
  }
  return std::optional<client::Connection>();
}

Result<proto::Events> events_call(const EventsOptions& options) {
  proto::Events call;
  call.lease_id = options.lease;
  GPUROTA_ASSIGN_OR_RETURN(call.uid, uid_of(options.whose));
  if (options.since) {
    GPUROTA_ASSIGN_OR_RETURN(call.since, parse_since("--since", *options.since, now()));
  } else if (options.follow && !options.lease && !options.lines) {
    call.since = now();  // only new events
  }
  if (options.follow) call.follow = true;
  return call;
}

Result<void> stream_events(const Context& context, const EventsOptions& options,
                           const proto::Events& call) {
  Stream stream{call};
  GPUROTA_ASSIGN_OR_RETURN(client::Connection connection, context.connect());
  if (options.lines) {
    GPUROTA_TRY(print_last(connection, options, stream.call));
    if (!options.follow) return {};
  }
  for (;;) {
    auto read = read_stream(connection, options, stream);
    if (read || !options.follow || !is_away(read.error())) return read;
    GPUROTA_ASSIGN_OR_RETURN(auto again, connect_again(context));
    if (!again) return {};
    connection = std::move(*again);
  }
}

Result<proto::Report> report_call(const ReportOptions& options) {
  proto::Report call;
  call.by = options.by;
  GPUROTA_ASSIGN_OR_RETURN(call.uid, uid_of(options.whose));
  constexpr std::array<std::string_view, 5> kBy = {"user", "group", "note", "gpu", "kind"};
  if (options.by && std::find(kBy.begin(), kBy.end(), *options.by) == kBy.end()) {
    return fail(Code::kInvalid,
                fmt::format("--by: cannot group by '{}': write user, group, note, gpu or kind",
                            display_text(*options.by, 40)));
  }
  if (options.days && options.since) {
    return fail(Code::kInvalid, "--days and --since both set the start: give one of them");
  }
  if (options.days) {
    int days = 0;
    const std::string& text = *options.days;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), days);
    if (error != std::errc() || end != text.data() + text.size() || days < 1 || days > 36500) {
      return fail(Code::kInvalid, "--days: write a number of days, such as --days 7");
    }
    call.since = now() - std::chrono::hours(24) * days;
  }
  if (options.since) {
    GPUROTA_ASSIGN_OR_RETURN(call.since, parse_since("--since", *options.since, now()));
  }
  return call;
}

// The exit status for a mistake on the command line, or an unknown user.
int not_asked(const Error& error) {
  return error.code == Code::kInvalid ? misused(error) : failed(error);
}

}  // namespace

int events(const Context& context, const EventsOptions& options) {
  const auto call = events_call(options);
  if (!call) return not_asked(call.error());
  const auto read = stream_events(context, options, *call);
  return read ? kExitOk : failed(read.error());
}

int report(const Context& context, const ReportOptions& options) {
  const auto call = report_call(options);
  if (!call) return not_asked(call.error());
  auto connection = context.connect();
  if (!connection) return failed(connection.error());
  const auto reply = connection->call(*call);
  if (!reply) return failed(reply.error());
  if (options.json) return shown(proto::document_json<proto::Report>(*reply));
  if (options.csv) return shown(report_csv(*reply));
  proto::Report::Reply named = *reply;
  if (named.by == "gpu") {
    if (const auto status = connection->call(proto::Status{})) name_gpus(named, status->gpus);
  }
  return shown(report_text(named, terminal_layout()));
}

}  // namespace gpurota::cli
