// The signals of a program that we start: a mask and what is ignored go through execve, so what we
// block and ignore for ourselves would be so in it too, and it could not be told to end. Everything
// that forks to execute uses this in its child.
#pragma once

#include <csignal>

namespace gpurota {

// The state of signals that execve passes on.
struct ProgramSignals {
  sigset_t blocked;
  sigset_t ignored;

  // Nothing blocked, nothing ignored: for what belongs to nobody's session.
  static ProgramSignals none();
  // As this process has them now: for what is to be as if we were not there, asked before we change
  // any.
  static ProgramSignals current();
};

// Of this process. Only makes system calls: may be called between fork and execve. A signal that
// was sent meanwhile, and is not blocked or ignored any more, is delivered before this returns.
void set_signals(const ProgramSignals& signals);

}  // namespace gpurota
