#include "cli/args/queue_args.h"

#include "base/text.h"

#include <fmt/format.h>

namespace gpurota::cli {
namespace {

// The most bookings that the daemon makes in one call.
constexpr int kMostWeeks = 60;

// Reads the options of a booking. The command does not wait for a booking, so options about waiting
// are refused.
Result<void> read_booking(const Raw& raw, ReserveOptions& reserve) {
  reserve.at = raw.at;
  GPUROTA_ASSIGN_OR_RETURN(reserve.weekly, number_of("--weekly", raw.weekly, kMostWeeks));
  if (!reserve.at) {
    if (raw.on_time) {
      return fail(Code::kInvalid, "--on-time is of a booking: say with --at when it begins");
    }
    if (!reserve.weekly) return {};
    return fail(Code::kInvalid,
                "--weekly repeats a booking: say with --at when the first one begins, as --at "
                "\"Mon 09:00\"");
  }
  reserve.on_time = raw.on_time;
  if (raw.wait || raw.nonblock || raw.force || raw.short_) {
    return fail(Code::kInvalid,
                "--at books GPUs for later: leave out --wait, --nonblock, --force and --short");
  }
  if (raw.name) {
    return fail(Code::kInvalid, "--at: a booking has an id, as R7; leave out --name");
  }
  if (raw.swap) {
    return fail(Code::kInvalid,
                "--at cannot be combined with --swap, as nobody knows ahead who takes part: "
                "leave it out, or book a slice with --memory");
  }
  return {};
}

Result<Command> calendar_command(const Raw& raw) {
  CalendarOptions calendar;
  constexpr int kMostDays = 366;
  GPUROTA_ASSIGN_OR_RETURN(const auto days, number_of("--days", raw.days, kMostDays));
  calendar.days = days.value_or(calendar.days);
  calendar.ical = raw.ical;
  calendar.json = raw.json;
  if (calendar.ical && calendar.json) {
    return fail(Code::kInvalid, "give --ical or --json, not both");
  }
  return calendar;
}

Result<Command> reserve_command(const Raw& raw) {
  ReserveOptions reserve;
  GPUROTA_TRY(read_wishes(raw, reserve));
  GPUROTA_ASSIGN_OR_RETURN(reserve.lasts, time_of("--for", raw.for_));
  reserve.until = raw.until;
  if (reserve.until && reserve.lasts) {
    return fail(Code::kInvalid, "--until and --for both say when it ends: give one of them");
  }
  GPUROTA_TRY(read_booking(raw, reserve));
  reserve.take_over = raw.force;
  reserve.is_short = raw.short_;
  reserve.json = raw.json;
  if (reserve.json && reserve.is_short) {
    return fail(Code::kInvalid, "give --json or --short, not both");
  }
  return reserve;
}

Result<Command> claim_command(const Raw& raw) {
  if (raw.positional.empty()) {
    return fail(Code::kInvalid,
                "which booking? For instance: gpurota claim R16 (gpurota calendar lists them)");
  }
  GPUROTA_ASSIGN_OR_RETURN(const RequestHandle booking, request_handle(raw.positional.front()));
  if (!booking.name.empty()) {
    return fail(Code::kInvalid,
                fmt::format("'{}' is not a booking: bookings look like R16 ('gpurota calendar' "
                            "lists them)",
                            display_text(booking.name, 40)));
  }
  return ClaimOptions{booking, raw.json};
}

Result<Command> cancel_command(const Raw& raw) {
  CancelOptions cancel;
  for (const std::string& word : raw.positional) {
    GPUROTA_ASSIGN_OR_RETURN(cancel.requests.emplace_back(), request_handle(word));
  }
  if (cancel.requests.empty()) {
    return fail(Code::kInvalid, "which request? For instance: gpurota cancel R7");
  }
  cancel.reason = raw.reason;
  return cancel;
}

Result<Command> explain_command(const Raw& raw) {
  ExplainOptions explain;
  explain.json = raw.json;
  if (raw.positional.empty()) return explain;
  const std::string& word = raw.positional.front();
  // A bare number means a request: users ask more often why they wait.
  const auto request = request_handle(word);
  const auto lease = lease_handle(word);
  if (request && request->name.empty()) {
    explain.request = *request;
  } else if (lease && lease->name.empty()) {
    explain.lease = *lease;
  } else if (lease) {
    explain.name = lease->name;
  }
  if (lease || request) return explain;
  return tl::unexpected(neither_request_nor_lease(word));
}

Result<Command> drain_command(const std::string& name, const Raw& raw) {
  DrainOptions drain;
  drain.drain = name == "drain";
  GPUROTA_ASSIGN_OR_RETURN(drain.gpu_ids, split_ids(raw.positional));
  drain.reason = raw.reason;
  if (drain.gpu_ids.empty()) {
    return fail(Code::kInvalid, fmt::format("which GPU? For instance: gpurota {} 3", name));
  }
  return drain;
}

}  // namespace

bool is_queue_command(const std::string& name) {
  return name == "reserve" || name == "calendar" || name == "queue" || name == "cancel" ||
         name == "claim" || name == "explain" || name == "limits" || name == "drain" ||
         name == "undrain";
}

Result<Command> queue_command(const std::string& name, const Raw& raw) {
  if (name == "reserve") return reserve_command(raw);
  if (name == "calendar") return calendar_command(raw);
  if (name == "queue") {
    GPUROTA_ASSIGN_OR_RETURN(Whose whose, whose_of(raw));
    return QueueOptions{raw.json, std::move(whose)};
  }
  if (name == "claim") return claim_command(raw);
  if (name == "cancel") return cancel_command(raw);
  if (name == "explain") return explain_command(raw);
  if (name == "limits") return LimitsOptions{raw.user, raw.json};
  return drain_command(name, raw);
}

}  // namespace gpurota::cli
