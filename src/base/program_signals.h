// The signals of a program that we start. execve keeps the signal mask and the ignored signals, so
// the program would inherit those that we block and ignore, and could not be asked to end. Every
// child that is forked to execute a program calls set_signals.
#pragma once

#include <csignal>

namespace gpurota {

// The state of signals that execve keeps.
struct ProgramSignals {
  sigset_t blocked;
  sigset_t ignored;

  // Nothing blocked, nothing ignored: for programs outside any user's session.
  static ProgramSignals none();
  // The state of this process: for programs that must start as if we did not exist. Call it before
  // changing any signal.
  static ProgramSignals current();
};

// Sets the signals of this process. Makes system calls only: may be called between fork and execve.
// A pending signal that is no longer blocked or ignored is delivered before this returns.
void set_signals(const ProgramSignals& signals);

}  // namespace gpurota
