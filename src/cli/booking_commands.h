// Commands about bookings, and the times of day that others take (--until).
#pragma once

#include "cli/commands.h"
#include "core/time.h"

#include <chrono>
#include <optional>
#include <string>

namespace gpurota::cli {

// `reserve --at`.
int book(const Context& context, const ReserveOptions& options);
// From the beginning on; nothing: no such time was given.
Result<std::optional<std::chrono::seconds>> time_until(const std::optional<std::string>& until,
                                                       WallTime begin);

}  // namespace gpurota::cli
