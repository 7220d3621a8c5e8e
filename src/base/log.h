// The log façade: passes a message and its fields to a sink that main() chooses.
//
// base, core, lease, sched, watch, config and proto never log: they return errors. daemon, sys and
// the mains log. An error is logged once, where it stops being passed on. The message of a failure
// that the program survives ends with what happens instead ("…, ignoring"). Thread-safe.
//
//   log::warn("lease ended", {{"lease", to_string(id)}, {"reason", reason}});
#pragma once

#include "base/result.h"

#include <fmt/core.h>

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>

namespace gpurota::log {

enum class Level { kDebug, kInfo, kWarning, kError };

struct Field {
  std::string_view key;  // lower snake case
  std::string value;

  Field(std::string_view k, std::string_view v) : key(k), value(v) {}
  Field(std::string_view k, const char* v) : key(k), value(v) {}
  Field(std::string_view k, const std::string& v) : key(k), value(v) {}
  template <class T>
  Field(std::string_view k, const T& v) : key(k), value(fmt::format("{}", v)) {}
};

using Fields = std::initializer_list<Field>;
// Receives one finished line without a newline, `message key=value key="two words"`, with values
// made safe by display_text, and the original fields. The sink runs under the lock of the log and
// must not log itself.
using Sink = std::function<void(Level, const std::string& line, const Fields& fields)>;

// Whether to write a line; not called for debug lines. The filter runs under the lock of the log
// and must not log itself.
using Filter = std::function<bool(std::string_view message, const Fields& fields)>;
void set_filter(Filter filter);  // empty: writes all lines

// The default sink writes "<N>line
// " to stderr, with the prefix that the journal reads. If stderr is a terminal, it writes "HH:MM:SS
// level line
// ".
void set_sink(Sink sink);  // empty: restores the default
void set_level(Level least);
Result<Level> parse_level(std::string_view name);  // debug, info, warning, error

void write(Level level, std::string_view message, Fields fields = {});
inline void debug(std::string_view message, Fields fields = {}) {
  write(Level::kDebug, message, fields);
}
inline void info(std::string_view message, Fields fields = {}) {
  write(Level::kInfo, message, fields);
}
inline void warn(std::string_view message, Fields fields = {}) {
  write(Level::kWarning, message, fields);
}
inline void error(std::string_view message, Fields fields = {}) {
  write(Level::kError, message, fields);
}

}  // namespace gpurota::log
