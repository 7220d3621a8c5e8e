#include "cli/run/supervise.h"

#include "base/text.h"
#include "cli/text/output.h"

#include <algorithm>
#include <cerrno>
#include <csignal>

#include <poll.h>
#include <sys/wait.h>

namespace gpurota::cli {
namespace {

using std::chrono::milliseconds;
using Clock = LeaseWatch::Clock;

// Between SIGTERM and SIGKILL for a command that only we can end.
constexpr milliseconds kGrace{10000};
// The time in which a service manager restarts a daemon.
constexpr milliseconds kRestart{2000};

// Whether the command ended as the processes of an ended lease do: by the daemon's signals.
bool ended_from_outside(int status) {
  return WIFSIGNALED(status) && (WTERMSIG(status) == SIGTERM || WTERMSIG(status) == SIGKILL);
}

}  // namespace

void Supervisor::poll_once(std::optional<milliseconds> longest) {
  const Clock::time_point now = Clock::now();
  std::optional<Clock::time_point> until;
  if (longest) until = now + *longest;
  for (const auto& other : {watch_.retry_at(), kill_at_}) {
    if (other && (!until || *other < *until)) until = *other;
  }
  int timeout = -1;
  if (until) {
    timeout = static_cast<int>(
        std::max<std::int64_t>(0, std::chrono::ceil<milliseconds>(*until - now).count()));
  }
  pollfd polled[2] = {{signals_.fd(), POLLIN, 0}, {watch_.fd(), POLLIN, 0}};
  (void)::poll(polled, 2, timeout);
  on_signals();
  watch_.step();
  on_lease();
}

void Supervisor::on_signals() {
  bool children = false;
  while (const auto info = signals_.next()) {
    if (info->ssi_signo == SIGCHLD) {
      children = true;
    } else if (status_) {
      // The command has ended already. A signal from the terminal counts, too: the user wants this
      // process to end.
      const bool harmless = info->ssi_signo == SIGWINCH || info->ssi_signo == SIGCONT ||
                            info->ssi_signo == SIGURG || info->ssi_signo == SIGPIPE;
      interrupted_ = interrupted_ || !harmless;
    } else if (should_forward(*info, command_)) {
      (void)::kill(command_, static_cast<int>(info->ssi_signo));
    }
  }
  if (children) reap();
}

void Supervisor::reap() {
  int status = 0;
  for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0;) {
    if (pid != command_) continue;  // an orphan of the lease that became our child
    if (WIFSTOPPED(status)) {
      on_stopped(WSTOPSIG(status));
    } else {
      status_ = status;
      kill_at_.reset();
    }
  }
}

void Supervisor::on_stopped(int signal) {
  // After a stop from the terminal, this process stops too, because the shell waits for this
  // process. A command stopped by SIGSTOP is left to its sender, who will continue the command and
  // does not know of us.
  if (signal != SIGTSTP && signal != SIGTTIN && signal != SIGTTOU) return;
  signals_.stop_self(signal);
  (void)::kill(command_, SIGCONT);
}

void Supervisor::on_lease() {
  for (const std::string& notice : watch_.take_notices()) complain(display_text(notice, 600));
  if (status_ || !(watch_.ending() || watch_.ended())) return;
  const bool lost = watch_.ended() && *watch_.ended() != proto::Ended::kFinished;
  if (!told_ && (lost || watch_.ending()) && !watch_.reason().empty()) {
    told_ = true;
    complain(watch_.end_text());
  }
  if (!watch_.forgotten()) return;
  if (!kill_at_) {
    (void)::kill(command_, SIGTERM);
    kill_at_ = Clock::now() + kGrace;
  } else if (Clock::now() >= *kill_at_) {
    (void)::kill(command_, SIGKILL);
    kill_at_ = Clock::now() + kGrace;
  }
}

int Supervisor::wait_for_command() {
  reap();  // the command may have ended before anything looked for SIGCHLD
  while (!status_) poll_once(std::nullopt);
  return *status_;
}

void Supervisor::wait_for_lease(milliseconds patience) {
  const Clock::time_point until = Clock::now() + patience;
  const milliseconds restart =
      status_ && ended_from_outside(*status_) ? std::min(kRestart, patience) : milliseconds(0);
  const Clock::time_point comes_back = Clock::now() + restart;
  if (watch_.fd() < 0) {
    watch_.hurry();
    watch_.step();
  }
  while (!watch_.ended() && !interrupted_) {
    const Clock::time_point end = watch_.fd() >= 0 ? until : comes_back;
    const auto left = std::chrono::ceil<milliseconds>(end - Clock::now());
    if (left <= milliseconds::zero()) return;
    poll_once(left);
  }
}

}  // namespace gpurota::cli
