#include "sys/journal.h"

// Our lines name no source file.
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#include <cstdio>
#include <cstdlib>

#include <sys/stat.h>
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

}  // namespace

bool stderr_is_journal() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  unsigned long long device = 0, inode = 0;
  struct stat info {};
  return stream != nullptr && std::sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
         ::fstat(STDERR_FILENO, &info) == 0 && info.st_dev == device && info.st_ino == inode;
}

log::Sink journal_sink() {
  return [](log::Level level, const std::string& line) {
    const int priority = priority_of(level);
    if (::sd_journal_send("MESSAGE=%s", line.c_str(), "PRIORITY=%i", priority,
                          "SYSLOG_IDENTIFIER=gpurotad", nullptr) < 0) {
      std::fprintf(stderr, "<%d>%s\n", priority, line.c_str());
    }
  };
}

}  // namespace gpurota::sys
