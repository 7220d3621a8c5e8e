// Checks the settings of a lease's turns and soft limits when it is made and when it is changed,
// before LeaseManager and Queue get them. Pure; used on the state thread.
#pragma once

#include "base/result.h"
#include "config/config.h"

#include <chrono>
#include <optional>
#include <string>

namespace gpurota::daemon {

// -100 to 100; nothing said is 0.
Result<int> read_priority(std::optional<int> said);

// "auto" is zero. A user's turns have an end that others can wait for; administrators may set what
// gpurota set takes.
Result<std::optional<std::chrono::milliseconds>> read_quantum(
    const std::optional<std::string>& said, bool administrator);

// A soft limit whose policy is to move memory out is none for memory that cannot be moved.
Result<void> check_soft_limit(const config::SoftLimit& site, bool swap);

}  // namespace gpurota::daemon
