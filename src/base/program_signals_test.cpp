#include "base/program_signals.h"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

namespace gpurota {
namespace {

sigset_t set_of(int signal) {
  sigset_t set;
  (void)::sigemptyset(&set);
  (void)::sigaddset(&set, signal);
  return set;
}

// Runs in a child, which may change its own signals; the exit code says what did not hold.
template <class Check>
int in_child(Check check) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(check());
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(ProgramSignals, SettingNoneUnblocksAndResetsAllSignals) {
  EXPECT_EQ(in_child([] {
              const sigset_t term = set_of(SIGTERM);
              (void)::sigprocmask(SIG_BLOCK, &term, nullptr);
              for (const int signal : {SIGPIPE, SIGXFSZ}) (void)std::signal(signal, SIG_IGN);
              set_signals(ProgramSignals::none());
              const ProgramSignals now = ProgramSignals::current();
              for (int signal = 1; signal < NSIG; ++signal) {
                if (::sigismember(&now.blocked, signal) == 1) return signal;
                if (::sigismember(&now.ignored, signal) == 1) return signal;
              }
              return 0;
            }),
            0);
}

TEST(ProgramSignals, FormerHandlersAreRestored) {
  EXPECT_EQ(in_child([] {
              const sigset_t usr = set_of(SIGUSR1);
              (void)::sigprocmask(SIG_SETMASK, &usr, nullptr);
              (void)std::signal(SIGHUP, SIG_IGN);
              (void)std::signal(SIGCHLD, SIG_DFL);
              const ProgramSignals before = ProgramSignals::current();
              sigset_t all;
              (void)::sigfillset(&all);
              (void)::sigprocmask(SIG_SETMASK, &all, nullptr);
              (void)std::signal(SIGCHLD, SIG_IGN);
              set_signals(before);
              const ProgramSignals now = ProgramSignals::current();
              if (::sigismember(&now.blocked, SIGUSR1) != 1) return 1;
              if (::sigismember(&now.blocked, SIGTERM) == 1) return 2;
              if (::sigismember(&now.ignored, SIGHUP) != 1) return 3;
              return ::sigismember(&now.ignored, SIGCHLD) == 1 ? 4 : 0;
            }),
            0);
}

TEST(ProgramSignals, SignalSentWhileBlockedCounts) {
  EXPECT_EQ(in_child([] {
              const sigset_t term = set_of(SIGTERM);
              (void)::sigprocmask(SIG_BLOCK, &term, nullptr);
              (void)::raise(SIGTERM);
              set_signals(ProgramSignals::none());
              return 0;
            }),
            128 + SIGTERM);
}

}  // namespace
}  // namespace gpurota
