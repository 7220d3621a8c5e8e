#include "cli/run/signals.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <string>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace gpurota::cli {
namespace {

// The parent's pid from /proc/PID/stat: the second field after the name. The name may contain
// anything, and ends at the last parenthesis. 0: none visible.
pid_t parent_of(pid_t pid) {
  const Fd fd(::open(fmt::format("/proc/{}/stat", pid).c_str(), O_RDONLY | O_CLOEXEC));
  char buffer[512];
  const ssize_t size = fd ? ::read(fd.get(), buffer, sizeof buffer) : -1;
  if (size <= 0) return 0;
  const std::string text(buffer, static_cast<std::size_t>(size));
  const std::size_t name_end = text.rfind(')');
  int parent = 0;
  if (name_end == std::string::npos ||
      std::sscanf(text.c_str() + name_end + 1, " %*c %d", &parent) != 1) {
    return 0;
  }
  return parent;
}

}  // namespace

Result<Signals> Signals::make() {
  sigset_t taken;
  const ProgramSignals inherited = ProgramSignals::current();
  (void)::sigfillset(&taken);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) {
    (void)::sigdelset(&taken, fault);
  }
  if (::sigprocmask(SIG_BLOCK, &taken, nullptr) != 0) {
    return fail_errno("cannot block signals", errno);
  }
  (void)std::signal(SIGCHLD, SIG_DFL);
  Fd fd(::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return fail_errno("cannot make a signal descriptor", errno);
  return Signals(std::move(fd), inherited);
}

std::optional<signalfd_siginfo> Signals::next() const {
  signalfd_siginfo info{};
  for (;;) {
    const ssize_t got = ::read(fd_.get(), &info, sizeof info);
    if (got == sizeof info) return info;
    if (got < 0 && errno == EINTR) continue;
    return std::nullopt;
  }
}

void Signals::stop_self(int signal) const {
  struct sigaction plain {
  }, before{};
  plain.sa_handler = SIG_DFL;
  (void)::sigaction(signal, &plain, &before);
  sigset_t one;
  (void)::sigemptyset(&one);
  (void)::sigaddset(&one, signal);
  (void)::raise(signal);
  (void)::sigprocmask(SIG_UNBLOCK, &one, nullptr);  // this process stops here, and continues here
  (void)::sigprocmask(SIG_BLOCK, &one, nullptr);
  (void)::sigaction(signal, &before, nullptr);
}

bool is_descendant(pid_t pid, pid_t ancestor) {
  constexpr int kDeepest = 1000;  // bounds the loop: the tree may change meanwhile
  for (int depth = 0; pid > 1 && depth < kDeepest; ++depth) {
    if (pid == ancestor) return true;
    pid = parent_of(pid);
  }
  return false;
}

bool should_forward(const signalfd_siginfo& info, pid_t command) {
  if (info.ssi_signo == SIGCHLD) return false;
  // The kernel's codes (SI_KERNEL, …) are above zero, those of user processes zero or below. The
  // terminal's signals go to the whole foreground group, but its hangup goes only to the session's
  // leader.
  if (info.ssi_code > 0) return info.ssi_signo == SIGHUP && ::getsid(0) == ::getpid();
  const auto sender = static_cast<pid_t>(info.ssi_pid);
  if (sender == ::getpid()) return false;
  return sender == 0 || !is_descendant(sender, command);
}

void die_of(int signal) {
  const rlimit none{0, 0};
  (void)::setrlimit(RLIMIT_CORE, &none);
  (void)::prctl(PR_SET_DUMPABLE, 0);
  (void)::signal(signal, SIG_DFL);
  sigset_t one;
  (void)::sigemptyset(&one);
  (void)::sigaddset(&one, signal);
  (void)::raise(signal);
  (void)::sigprocmask(SIG_UNBLOCK, &one, nullptr);
  ::_exit(128 + signal);
}

}  // namespace gpurota::cli
