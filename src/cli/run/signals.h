// Signals of `gpurota run`: read from a descriptor while the command runs, because what to do with
// a signal depends on who sent it. Changes the signal mask of the process, and sets SIGCHLD to its
// default action: if it stayed ignored, the end of the command would not be reported.
#pragma once

#include "base/fd.h"
#include "base/program_signals.h"
#include "base/result.h"

#include <optional>

#include <sys/signalfd.h>
#include <sys/types.h>

namespace gpurota::cli {

class Signals {
 public:
  // Blocks all signals but those of our own faults.
  static Result<Signals> make();

  int fd() const { return fd_.get(); }
  // The signal settings for the command, as if gpurota were not there.
  const ProgramSignals& inherited() const { return inherited_; }
  // The next pending signal, if any.
  std::optional<signalfd_siginfo> next() const;

  // Stops this process like `signal` (SIGTSTP, SIGTTIN, SIGTTOU), and returns when it is continued.
  // Returns at once in an orphaned process group, where the shell has no job control.
  void stop_self(int signal) const;

 private:
  Signals(Fd fd, const ProgramSignals& inherited) : fd_(std::move(fd)), inherited_(inherited) {}

  Fd fd_;
  ProgramSignals inherited_;
};

// Whether to pass on to the command a signal that we received. Not passed on: signals from the
// terminal or the kernel, which the command's process group has already (except a hangup that only
// we get, as the session's leader); signals from the command or its children; and signals that
// concern only us.
bool should_forward(const signalfd_siginfo& info, pid_t command);

// Whether `pid` is `ancestor` or a descendant of it.
bool is_descendant(pid_t pid, pid_t ancestor);

// Ends this process by `signal`, like the command, without a core dump of our own. If the signal
// does not end this process, it exits with the status 128 + `signal`.
[[noreturn]] void die_of(int signal);

}  // namespace gpurota::cli
