#include "cli/site/shell_watch.h"

#include "abi/env.h"
#include "base/fd.h"
#include "base/text.h"
#include "cli/run/lease_watch.h"
#include "cli/text/output.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace gpurota::cli {
namespace {

std::string over_text(LeaseId lease, const std::string& reason) {
  const std::string why = display_text(reason, 300);
  return fmt::format("{} is over{}{}; if this shell still has its variables: " GPUROTA_LEAVE_LEASE,
                     to_string(lease), why.empty() ? "" : ": ", why);
}

// Runs until the lease or the shell has ended.
void watch(const client::Location& location, LeaseId lease, const Fd& shell) {
  LeaseWatch watched(location, lease);
  (void)watched.begin();
  while (!watched.ended()) {
    int timeout = -1;
    if (const auto retry = watched.retry_at()) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(*retry - LeaseWatch::Clock::now());
      timeout = static_cast<int>(std::max<std::int64_t>(left.count(), 0));
    }
    pollfd polled[2] = {{shell.get(), POLLIN, 0}, {watched.fd(), POLLIN, 0}};
    (void)::poll(polled, 2, timeout);
    if (polled[0].revents != 0) return;
    watched.step();
    for (const std::string& notice : watched.take_notices()) complain(display_text(notice, 600));
  }
  complain(over_text(lease, watched.reason()));
}

}  // namespace

void watch_for_shell(const client::Location& location, LeaseId lease) {
  if (::isatty(STDERR_FILENO) == 0 || ::isatty(STDOUT_FILENO) != 0) return;
  const Fd shell(static_cast<int>(::syscall(SYS_pidfd_open, ::getppid(), 0)));
  if (!shell || ::fork() != 0) return;
  // The shell waits for the end of file of our output, and nobody types for us.
  const Fd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!nothing || ::dup2(nothing.get(), 0) < 0 || ::dup2(nothing.get(), 1) < 0 || ::setsid() < 0) {
    ::_exit(1);
  }
  watch(location, lease, shell);
  ::_exit(0);
}

}  // namespace gpurota::cli
