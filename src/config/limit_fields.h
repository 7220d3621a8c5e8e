// The settings below [limits], one at a time: what parse.cpp finds in the file becomes a field of
// UserLimits. Pure.
#pragma once

#include "core/user_limits.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpurota::config {

inline constexpr std::array kLimitNames = {"gpus",     "memory",   "hours",  "waiting",
                                           "duration", "priority", "weight", "pinned"};

// As written in the file; neither of both: something else.
struct WrittenValue {
  std::optional<std::string> text;
  std::optional<std::int64_t> number;
};

// Sets the field `name`, one of kLimitNames. Returns what is wrong with the value, or "".
std::string set_limit(UserLimits& limits, std::string_view name, const WrittenValue& value);

// "30m", "12h", "7d", up to a year, in whole seconds.
std::string set_long_duration(std::optional<std::chrono::seconds>& into, const WrittenValue& value);

}  // namespace gpurota::config
