#include "base/log.h"

#include "base/text.h"

#include <atomic>
#include <cerrno>
#include <ctime>
#include <mutex>

#include <unistd.h>

namespace gpurota::log {
namespace {

// Long enough for an error with a path, short enough that one message cannot flood the journal.
constexpr std::size_t kMessageColumns = 1000;

std::atomic<Level> g_least{Level::kInfo};

struct Sinks {
  std::mutex mutex;  // held while the sink runs: lines never interleave
  Sink sink;
  Filter filter;
};

// Never destroyed: threads may log while the process exits.
Sinks& sinks() {
  static Sinks* const instance = new Sinks;
  return *instance;
}

const char* name_of(Level level) {
  switch (level) {
    case Level::kDebug:
      return "debug";
    case Level::kInfo:
      return "info";
    case Level::kWarning:
      return "warning";
    case Level::kError:
      return "error";
  }
  return "error";
}

// The syslog priority for the prefix "<N>", which the journal reads.
int priority_of(Level level) {
  switch (level) {
    case Level::kDebug:
      return 7;
    case Level::kInfo:
      return 6;
    case Level::kWarning:
      return 4;
    case Level::kError:
      return 3;
  }
  return 3;
}

std::string terminal_line(Level level, const std::string& line) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  (void)localtime_r(&now, &local);
  return fmt::format("{:02}:{:02}:{:02} {} {}\n", local.tm_hour, local.tm_min, local.tm_sec,
                     name_of(level), line);
}

void write_stderr(Level level, const std::string& line) {
  const std::string out = isatty(STDERR_FILENO) != 0
                              ? terminal_line(level, line)
                              : fmt::format("<{}>{}\n", priority_of(level), line);
  std::string_view rest = out;
  while (!rest.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // there is nowhere left to report the error
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

void append_value(std::string* line, std::string_view value) {
  const std::string shown = display_text(value);
  if (!shown.empty() && shown.find_first_of(" \"\\=") == std::string::npos) {
    line->append(shown);
    return;
  }
  line->push_back('"');
  for (char c : shown) {
    if (c == '"' || c == '\\') line->push_back('\\');
    line->push_back(c);
  }
  line->push_back('"');
}

}  // namespace

void set_sink(Sink sink) {
  Sinks& all = sinks();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.sink = std::move(sink);
}

void set_filter(Filter filter) {
  Sinks& all = sinks();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.filter = std::move(filter);
}

void set_level(Level least) { g_least.store(least, std::memory_order_relaxed); }

Result<Level> parse_level(std::string_view name) {
  for (Level level : {Level::kDebug, Level::kInfo, Level::kWarning, Level::kError}) {
    if (name == name_of(level)) return level;
  }
  return fail(Code::kInvalid,
              fmt::format("'{}' is not a log level; write debug, info, warning or error",
                          display_text(name, 40)));
}

void write(Level level, std::string_view message, Fields fields) {
  if (level < g_least.load(std::memory_order_relaxed)) return;
  Sinks& all = sinks();
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (level > Level::kDebug && all.filter && !all.filter(message, fields)) return;
  std::string line = display_text(message, kMessageColumns);
  for (const Field& field : fields) {
    line.push_back(' ');
    line.append(field.key);
    line.push_back('=');
    append_value(&line, field.value);
  }
  if (all.sink) {
    all.sink(level, line, fields);
  } else {
    write_stderr(level, line);
  }
}

}  // namespace gpurota::log
