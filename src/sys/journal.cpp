#include "sys/journal.h"

#include "base/text.h"

#include <fmt/format.h>

// No source file in journal entries.
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <sys/stat.h>
#include <sys/uio.h>
#include <syslog.h>
#include <unistd.h>

namespace gpurota::sys {
namespace {

int priority_of(log::Level level) {
  switch (level) {
    case log::Level::kDebug:
      return LOG_DEBUG;
    case log::Level::kInfo:
      return LOG_INFO;
    case log::Level::kWarning:
      return LOG_WARNING;
    case log::Level::kError:
      return LOG_ERR;
  }
  return LOG_ERR;
}

// Fields that people search for. Names of the kernel's own fields begin with an underscore, so they
// never collide with these.
const std::pair<std::string_view, std::string> kNames[] = {
    {"lease", "LEASE="}, {"uid", "UID="}, {"gpu", "GPU="}};

}  // namespace

bool stderr_is_journal() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  unsigned long long device = 0, inode = 0;
  struct stat info {};
  return stream != nullptr && std::sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
         ::fstat(STDERR_FILENO, &info) == 0 && info.st_dev == device && info.st_ino == inode;
}

std::vector<std::string> journal_entry(log::Level level, const std::string& line,
                                       const log::Fields& fields) {
  std::vector<std::string> entry = {fmt::format("PRIORITY={}", priority_of(level)),
                                    "SYSLOG_IDENTIFIER=gpurotad", "MESSAGE=" + line};
  for (const log::Field& field : fields) {
    for (const auto& [key, name] : kNames) {
      const bool known = !field.value.empty() && field.value != "-";
      if (known && field.key == key) entry.push_back(name + display_text(field.value));
    }
  }
  return entry;
}

log::Sink journal_sink() {
  return [](log::Level level, const std::string& line, const log::Fields& fields) {
    std::vector<std::string> entry = journal_entry(level, line, fields);
    std::vector<iovec> parts;
    for (std::string& field : entry) parts.push_back({field.data(), field.size()});
    if (::sd_journal_sendv(parts.data(), static_cast<int>(parts.size())) < 0) {
      std::fprintf(stderr, "<%d>%s\n", priority_of(level), line.c_str());
    }
  };
}

}  // namespace gpurota::sys
