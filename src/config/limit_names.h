// The keys of [limits], [limits.user.NAME] and [limits.group.NAME].
#pragma once

#include <array>

namespace gpurota::config {

inline constexpr std::array kLimitNames = {"gpus",       "memory",   "hours",       "waiting",
                                           "duration",   "priority", "weight",      "pinned",
                                           "book_ahead", "bookings", "interactive", "compute"};

}  // namespace gpurota::config
