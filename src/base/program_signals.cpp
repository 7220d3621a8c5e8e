#include "base/program_signals.h"

namespace gpurota {

ProgramSignals ProgramSignals::none() {
  ProgramSignals signals;
  (void)::sigemptyset(&signals.blocked);
  (void)::sigemptyset(&signals.ignored);
  return signals;
}

ProgramSignals ProgramSignals::current() {
  ProgramSignals signals = none();
  (void)::sigprocmask(SIG_SETMASK, nullptr, &signals.blocked);
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action = {};
    if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) {
      (void)::sigaddset(&signals.ignored, signal);
    }
  }
  return signals;
}

// Sets the dispositions before the mask, so that a signal unblocked here has its new disposition.
void set_signals(const ProgramSignals& signals) {
  for (int signal = 1; signal < NSIG; ++signal) {
    const bool ignored = ::sigismember(&signals.ignored, signal) == 1;
    (void)::signal(signal, ignored ? SIG_IGN : SIG_DFL);
  }
  (void)::sigprocmask(SIG_SETMASK, &signals.blocked, nullptr);
}

}  // namespace gpurota
