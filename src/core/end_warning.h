// A signal that the programs of a lease get some time before it ends, so that they can save what
// they have. Pure.
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
  std::chrono::seconds before{0};  // the end; zero: there is no warning
  int signal = 0;                  // one of those of parse_warning_signal

  bool is_set() const { return before.count() > 0; }
  bool operator==(const EndWarning&) const = default;
};

// "USR1", "SIGUSR1"; of HUP, INT, USR1, USR2, TERM, CONT and WINCH.
std::optional<int> parse_warning_signal(std::string_view word);
// "USR1"; empty: not one of them.
std::string_view warning_signal_name(int signal);

// As a client asks for it: without a signal it is SIGUSR1, and zero seconds are no warning.
// kInvalid with what to write.
Result<EndWarning> make_end_warning(std::int64_t seconds, const std::optional<std::string>& signal);

// `now`, with what is asked for changed.
Result<EndWarning> changed_end_warning(const EndWarning& now, std::optional<std::int64_t> seconds,
                                       const std::optional<std::string>& signal);

}  // namespace gpurota
