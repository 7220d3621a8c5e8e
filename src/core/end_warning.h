// A signal that the programs of a lease get some time before the lease ends, so that they can save
// their work. Pure.
#pragma once

#include "base/result.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpurota {

inline constexpr std::chrono::hours kLongestEndWarning{24};

struct EndWarning {
  std::chrono::seconds before{0};  // before the end; zero: no warning
  int signal = 0;                  // one that parse_warning_signal accepts

  bool is_set() const { return before.count() > 0; }
  bool operator==(const EndWarning&) const = default;
};

// "USR1" or "SIGUSR1". Accepts HUP, INT, USR1, USR2, TERM, CONT and WINCH.
std::optional<int> parse_warning_signal(std::string_view word);
// "USR1"; empty: not a signal for warnings.
std::string_view warning_signal_name(int signal);

// From a client's request. Without a signal it is SIGUSR1; zero seconds mean no warning. kInvalid
// says what to write.
Result<EndWarning> make_end_warning(std::int64_t seconds, const std::optional<std::string>& signal);

// Returns `now`, changed by those arguments that have a value.
Result<EndWarning> changed_end_warning(const EndWarning& now, std::optional<std::int64_t> seconds,
                                       const std::optional<std::string>& signal);

}  // namespace gpurota
