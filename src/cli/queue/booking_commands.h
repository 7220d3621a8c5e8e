// Commands about bookings, and the times of day for --until of other commands.
#pragma once

#include "cli/commands.h"
#include "client/connection.h"
#include "core/time.h"

#include <chrono>
#include <optional>
#include <string>

namespace gpurota::cli {

// `reserve --at`.
int book(const Context& context, const ReserveOptions& options);
// Uses a booking of the caller's, waits until its GPUs are free, and returns its lease. Fails if
// the booking's time has not come, or is over. Unless `quiet`, prints on standard error what the
// booking waits for.
Result<LeaseId> claim_booking(client::Connection& connection, RequestId booking, bool quiet);
// The duration from `begin` until that time; nothing: no time was given.
Result<std::optional<std::chrono::seconds>> time_until(const std::optional<std::string>& until,
                                                       WallTime begin);

}  // namespace gpurota::cli
