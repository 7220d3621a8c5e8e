#include "core/end_warning.h"

#include "base/text.h"

#include <fmt/format.h>

#include <array>
#include <csignal>

namespace gpurota {
namespace {

struct Known {
  std::string_view name;
  int signal;
};
constexpr std::array kSignals = {
    Known{"HUP", SIGHUP},   Known{"INT", SIGINT},   Known{"USR1", SIGUSR1},  Known{"USR2", SIGUSR2},
    Known{"TERM", SIGTERM}, Known{"CONT", SIGCONT}, Known{"WINCH", SIGWINCH}};

}  // namespace

std::optional<int> parse_warning_signal(std::string_view word) {
  if (word.starts_with("SIG")) word.remove_prefix(3);
  for (const Known& each : kSignals) {
    if (each.name == word) return each.signal;
  }
  return std::nullopt;
}

std::string_view warning_signal_name(int signal) {
  for (const Known& each : kSignals) {
    if (each.signal == signal) return each.name;
  }
  return {};
}

Result<EndWarning> make_end_warning(std::int64_t seconds,
                                    const std::optional<std::string>& signal) {
  if (seconds < 0 || seconds > std::chrono::seconds(kLongestEndWarning).count()) {
    return fail(Code::kInvalid, "a warning comes at most 24 h before the end: write --warn 10m");
  }
  const auto number = parse_warning_signal(signal.value_or("USR1"));
  if (!number) {
    return fail(Code::kInvalid,
                fmt::format("'{}' is not a signal to warn with: write HUP, INT, USR1, USR2, TERM, "
                            "CONT or WINCH, as --warn 10m:USR2",
                            display_text(*signal, 40)));
  }
  return seconds == 0 ? EndWarning{} : EndWarning{std::chrono::seconds(seconds), *number};
}

Result<EndWarning> changed_end_warning(const EndWarning& now, std::optional<std::int64_t> seconds,
                                       const std::optional<std::string>& signal) {
  const std::string_view old = warning_signal_name(now.signal);
  const auto name = signal || old.empty() ? signal : std::optional(std::string(old));
  return make_end_warning(seconds.value_or(now.before.count()), name);
}

}  // namespace gpurota
