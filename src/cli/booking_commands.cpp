// calendar, and `reserve --at`.
#include "cli/booking_commands.h"

#include "cli/calendar_text.h"
#include "cli/output.h"
#include "cli/waiting.h"
#include "cli/when.h"
#include "proto/codec.h"

#include <algorithm>

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
  auto connection = context.connect();
  if (!connection) return failed(connection.error());
  const auto reply = connection->call(call);
  if (!reply) return failed(reply.error());
  if (options.json) return shown(proto::document_json<proto::Book>(*reply));
  return done(context, booked_text(reply->bookings, time));
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
  return shown(calendar_text(*reply, options.days, terminal_look(), now()));
}

}  // namespace gpurota::cli
