// Signals of `gpurota run`: taken from a descriptor while the command runs, so that each can be
// judged by who sent it. Changes the signal mask of the process, and SIGCHLD if it was ignored:
// then nobody would hear of the command's end.
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
  // Blocks all but those that a fault of our own raises.
  static Result<Signals> make();

  int fd() const { return fd_.get(); }
  // The signals that the command is to have, as if gpurota were not there.
  const ProgramSignals& inherited() const { return inherited_; }
  // The next one that has come, if any.
  std::optional<signalfd_siginfo> next() const;

  // Stops this process as `signal` (SIGTSTP, SIGTTIN, SIGTTOU) would have, and returns when it is
  // continued. At once where the shell does no job control (an orphaned process group).
  void stop_self(int signal) const;

 private:
  Signals(Fd fd, const ProgramSignals& inherited) : fd_(std::move(fd)), inherited_(inherited) {}

  Fd fd_;
  ProgramSignals inherited_;
};

// Whether a signal that came to us is to go on to the command. Not: what the terminal or the kernel
// sent (the command's process group has it already; but a hangup that only the leader of the
// session gets, if that is us, does go on), what the command or a child of its sent, and what
// concerns only us.
bool should_forward(const signalfd_siginfo& info, pid_t command);

// Whether `pid` is `ancestor` or below it.
bool is_descendant(pid_t pid, pid_t ancestor);

// Ends this process as `signal` ended the command, without a core of our own; if the signal does
// not, with 128 + signal.
[[noreturn]] void die_of(int signal);

}  // namespace gpurota::cli
