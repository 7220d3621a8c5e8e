// calendar, claim, and `reserve --at`.
#include "cli/queue/booking_commands.h"

#include "base/text.h"
#include "cli/args/when.h"
#include "cli/queue/calendar_text.h"
#include "cli/queue/waiting.h"
#include "cli/text/output.h"
#include "proto/codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <thread>

namespace gpurota::cli {

Result<std::optional<std::chrono::seconds>> time_until(const std::optional<std::string>& until,
                                                       WallTime begin) {
  if (!until) return std::optional<std::chrono::seconds>();
  GPUROTA_ASSIGN_OR_RETURN(const WallTime end, parse_when("--until", *until, begin));
  const auto left = std::chrono::duration_cast<std::chrono::seconds>(end - begin);
  return std::optional(std::max(left, std::chrono::seconds(1)));
}

int book(const Context& context, const ReserveOptions& options) {
  const WallTime time = now();
  const auto begins = parse_when("--at", *options.at, time);
  if (!begins) return misused(begins.error());
  const auto until = time_until(options.until, *begins);
  if (!until) return misused(until.error());
  ReserveOptions wishes = options;
  if (*until) wishes.lasts = *until;
  proto::Book call;
  call.begins = weekly(*begins, options.weekly.value_or(1));
  call.request = lease_request(wishes, "reservation");
  if (options.on_time) call.on_time = true;
  auto connection = context.connect();
  if (!connection) return failed(connection.error());
  const auto reply = connection->call(call);
  if (!reply) return failed(reply.error());
  if (options.json) return shown(proto::document_json<proto::Book>(*reply));
  return done(context, booked_text(reply->bookings, time));
}

Result<LeaseId> claim_booking(client::Connection& connection, RequestId booking, bool quiet) {
  // Leases that have to end first may take some seconds, and a job that stores much data may take
  // longer.
  constexpr auto kAskAgain = std::chrono::milliseconds(250);
  std::string said;
  for (;;) {
    GPUROTA_ASSIGN_OR_RETURN(const proto::Claim::Reply reply,
                             connection.call(proto::Claim{booking}));
    if (reply.lease_id) return *reply.lease_id;
    std::string waits = fmt::format("{} begins as soon as its GPUs are free", to_string(booking));
    if (reply.waiting_for && !reply.waiting_for->empty()) {
      waits += ": " + display_text(*reply.waiting_for, 400);
    }
    if (waits != said && !quiet) complain(waits);
    said = waits;
    std::this_thread::sleep_for(kAskAgain);
  }
}

int claim(const Context& context, const ClaimOptions& options) {
  auto connection = context.connect();
  if (!connection) return failed(connection.error());
  const auto lease = claim_booking(*connection, options.booking, context.quiet);
  if (!lease) return failed(lease.error());
  if (options.json) {
    proto::Claim::Reply reply;
    reply.lease_id = *lease;
    return shown(proto::document_json<proto::Claim>(reply));
  }
  return done(context, fmt::format("{0} is {1} now; to use it: gpurota run --lease {1} -- …",
                                   to_string(options.booking), to_string(*lease)));
}

int calendar(const Context& context, const CalendarOptions& options) {
  auto connection = context.connect();
  if (!connection) return failed(connection.error());
  if (options.json) {
    const auto reply = connection->call(proto::ListBookings{});
    return reply ? shown(proto::document_json<proto::ListBookings>(*reply)) : failed(reply.error());
  }
  const auto reply = connection->call(proto::Status{});
  if (!reply) return failed(reply.error());
  if (options.ical) return shown(calendar_ical(*reply, host_name(), now()));
  return shown(calendar_text(*reply, options.days, terminal_layout(), now()));
}

}  // namespace gpurota::cli
