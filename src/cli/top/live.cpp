#include "cli/top/live.h"

#include "cli/exit_codes.h"
#include "cli/text/output.h"
#include "cli/top/source.h"
#include "cli/top/terminal.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <utility>

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace gpurota::cli::topview {
namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kSamplePeriod{1000};

enum class Woken { kForNothing, kByKeys, kToResize, kToSuspend, kToContinue, kToEnd };

// Makes signals readable from a descriptor; restores their settings when destroyed.
class TerminalSignals {
 public:
  TerminalSignals() {
    (void)::sigemptyset(&wanted_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP, SIGCONT}) {
      (void)::sigaddset(&wanted_, signal);
    }
    (void)::sigprocmask(SIG_BLOCK, &wanted_, &before_);
    fd_ = Fd(::signalfd(-1, &wanted_, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  ~TerminalSignals() { (void)::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  TerminalSignals(const TerminalSignals&) = delete;
  TerminalSignals& operator=(const TerminalSignals&) = delete;

  Woken wait(SteadyClock::time_point until) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - SteadyClock::now());
    const int ms = static_cast<int>(std::max<std::int64_t>(left.count(), 0));
    std::array<pollfd, 2> ready{{{STDIN_FILENO, POLLIN, 0}, {fd_.get(), POLLIN, 0}}};
    if (::poll(ready.data(), ready.size(), ms) <= 0) return Woken::kForNothing;
    signalfd_siginfo got{};
    if (::read(fd_.get(), &got, sizeof got) == static_cast<ssize_t>(sizeof got)) {
      return meaning_of(static_cast<int>(got.ssi_signo));
    }
    if ((ready[0].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) return Woken::kToEnd;
    return (ready[0].revents & POLLIN) != 0 ? Woken::kByKeys : Woken::kForNothing;
  }

  // Stops this process, as the user asked on the terminal; returns when it is continued.
  void stop_here() {
    struct sigaction usual {};
    usual.sa_handler = SIG_DFL;
    struct sigaction before {};
    (void)::sigaction(SIGTSTP, &usual, &before);
    (void)::raise(SIGTSTP);
    sigset_t stop;
    (void)::sigemptyset(&stop);
    (void)::sigaddset(&stop, SIGTSTP);
    (void)::sigprocmask(SIG_UNBLOCK, &stop, nullptr);  // this process stops here
    (void)::sigprocmask(SIG_BLOCK, &stop, nullptr);
    (void)::sigaction(SIGTSTP, &before, nullptr);
  }

 private:
  static Woken meaning_of(int signal) {
    if (signal == SIGWINCH) return Woken::kToResize;
    if (signal == SIGTSTP) return Woken::kToSuspend;
    if (signal == SIGCONT) return Woken::kToContinue;
    return Woken::kToEnd;
  }

  sigset_t wanted_{};
  sigset_t before_{};
  Fd fd_;
};

class Live {
 public:
  Live(Source source, bool ascii, Answers first, Terminal& terminal, TerminalSignals& signals)
      : source_(std::move(source)), terminal_(terminal), signals_(signals), ascii_(ascii) {
    model_.take(std::move(first));
    keep_choice(state_, model_);
  }

  void run() {
    auto next = SteadyClock::now() + kSamplePeriod;
    show();
    for (Woken woken = Woken::kForNothing; woken != Woken::kToEnd;) {
      woken = signals_.wait(next);
      if (woken == Woken::kByKeys && !take_keys()) return;
      if (woken == Woken::kToResize) terminal_.resize();
      if (woken == Woken::kToContinue) terminal_.redraw();
      if (woken == Woken::kToSuspend) {
        terminal_.leave();
        signals_.stop_here();
        terminal_.enter();
      }
      if (woken == Woken::kToEnd) return;
      if (SteadyClock::now() >= next) {
        sample();
        next = SteadyClock::now() + kSamplePeriod;
      }
      show();
    }
  }

 private:
  void sample() {
    auto answers = source_.ask();
    if (answers) {
      model_.take(std::move(*answers));
    } else {
      model_.lose(answers.error().message);
    }
    keep_choice(state_, model_);
  }

  void show() {
    const Frame frame{.width = terminal_.width(),
                      .height = terminal_.height(),
                      .now = now(),
                      .host = host_name(),
                      .live = true};
    Grid grid = draw(model_, state_, frame);
    if (ascii_) grid.make_ascii();
    terminal_.show(grid);
  }

  // False: the user has quit.
  bool take_keys() {
    while (const auto key = terminal_.read_key()) {
      const std::size_t page = terminal_.height() / 2;
      const Action action = on_key(state_, *key, model_, page);
      if (action.kind == Action::kQuit) return false;
      if (action.kind == Action::kRedraw) {
        terminal_.redraw();
      } else if (action.kind != Action::kNothing) {
        carry_out(action);
      }
    }
    return true;
  }

  void carry_out(const Action& action) {
    const auto done = source_.carry_out(action);
    state_.message = done ? *done : done.error().message;
    state_.refused = !done;
    std::replace(state_.message.begin(), state_.message.end(), '\n', ' ');
    sample();
  }

  Source source_;
  Terminal& terminal_;
  TerminalSignals& signals_;
  bool ascii_;
  Model model_;
  State state_;
};

}  // namespace

int run_live(const Context& context, bool ascii) {
  Source source(context);
  auto first = source.ask();
  if (!first) return failed(first.error());
  // Set up before the terminal changes, and kept until it is restored.
  TerminalSignals signals;
  auto terminal = Terminal::open(wants_colour());
  if (!terminal) return failed(terminal.error());
  Live(std::move(source), ascii, std::move(*first), **terminal, signals).run();
  return kExitOk;
}

}  // namespace gpurota::cli::topview
