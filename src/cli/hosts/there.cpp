#include "cli/hosts/there.h"

#include "base/text.h"
#include "cli/exit_codes.h"
#include "cli/hosts/ssh.h"
#include "cli/run/signals.h"
#include "cli/text/output.h"

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpurota::cli {
namespace {

[[noreturn]] void become_running_ssh(const std::vector<char*>& argv, const ProgramSignals& signals,
                                     pid_t parent) {
  (void)::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(kExitOfSsh);
  set_signals(signals);
  (void)::execvp(argv[0], argv.data());
  const std::string why =
      fmt::format("gpurota: cannot execute {}: {}\n", display_text(argv[0]), std::strerror(errno));
  (void)!::write(STDERR_FILENO, why.data(), why.size());
  ::_exit(kExitOfSsh);
}

// Signals that should end a program; ssh exits on them with a status that says nothing.
bool is_ending(int signal) {
  return signal == SIGINT || signal == SIGQUIT || signal == SIGTERM || signal == SIGHUP;
}

// Signals that came while ssh ran.
struct Came {
  std::optional<int> ended_by;  // the first signal that should end this process
  std::set<int> passed_on;
};

// Waits until ssh has ended, and returns its wait status.
int wait_for_ssh(pid_t pid, const Signals& signals, Came& came) {
  for (int status = 0;;) {
    if (::waitpid(pid, &status, WNOHANG | WUNTRACED) == pid) {
      if (!WIFSTOPPED(status)) return status;
      signals.stop_self(WSTOPSIG(status));
      (void)::kill(pid, SIGCONT);
      continue;
    }
    pollfd polled{signals.fd(), POLLIN, 0};
    (void)::poll(&polled, 1, -1);
    while (const auto info = signals.next()) {
      const int signal = static_cast<int>(info->ssi_signo);
      if (is_ending(signal) && !came.ended_by) came.ended_by = signal;
      if (!should_forward(*info, pid)) continue;
      came.passed_on.insert(signal);
      (void)::kill(pid, signal);
    }
  }
}

}  // namespace

bool has_terminal() { return ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0; }

int run_there(const RemoteRun& run) {
  const std::vector<std::string> words = running_words(run.host, run_line(run), run.terminal);
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const auto signals = Signals::make();
  if (!signals) {
    complain(display_lines(signals.error().message));
    return kExitRunFailed;
  }
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) {
    complain(fmt::format("cannot start a process: {}", std::strerror(errno)));
    return kExitRunFailed;
  }
  if (pid == 0) become_running_ssh(argv, signals->inherited(), parent);
  Came came;
  const int status = wait_for_ssh(pid, *signals, came);
  const bool failed = WIFSIGNALED(status) || WEXITSTATUS(status) == kExitOfSsh;
  if (failed && came.ended_by) die_of(*came.ended_by);
  if (WIFSIGNALED(status) && came.passed_on.contains(WTERMSIG(status))) die_of(WTERMSIG(status));
  if (failed) {
    complain(fmt::format("cannot reach {}, or its connection was lost: ssh failed", run.host));
    return kExitRunFailed;
  }
  return WEXITSTATUS(status) == kExitFor255 ? kExitOfSsh : WEXITSTATUS(status);
}

}  // namespace gpurota::cli
