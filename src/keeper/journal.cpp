#include "keeper/journal.h"

#include <systemd/sd-journal.h>

#include <cerrno>
#include <cstring>

#include <syslog.h>
#include <unistd.h>

namespace gpurota::keeper {
namespace {

// Where journald takes streams.
constexpr const char* kSocket = "/run/systemd/journal/stdout";

}  // namespace

std::string journal_name(const std::string& job) { return "gpurota-job-" + job; }

Result<void> check_journal() {
  if (::access(kSocket, F_OK) == 0) return {};
  return fail(
      Code::kUnavailable,
      "there is no journal here: systemd-journald is not running; leave out --output journal");
}

Result<Fd> open_journal(const std::string& job) {
  const int fd = ::sd_journal_stream_fd(journal_name(job).c_str(), LOG_INFO, 0);
  if (fd < 0) return fail_errno("cannot write to the journal (see --output)", -fd);
  return Fd(fd);
}

}  // namespace gpurota::keeper
