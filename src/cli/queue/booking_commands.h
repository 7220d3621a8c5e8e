// Commands about bookings, and the times of day that others take (--until).
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
// Uses a booking of the caller's, and waits until its GPUs are free: the lease that it is then. An
// error if its time has not come, or it is over. Unless it is quiet, it says on standard error what
// it waits for.
Result<LeaseId> claim_booking(client::Connection& connection, RequestId booking, bool quiet);
// From the beginning on; nothing: no such time was given.
Result<std::optional<std::chrono::seconds>> time_until(const std::optional<std::string>& until,
                                                       WallTime begin);

}  // namespace gpurota::cli
