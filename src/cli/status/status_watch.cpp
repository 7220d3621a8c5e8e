#include "cli/status/status_watch.h"

#include "cli/exit_codes.h"
#include "cli/status/status_view.h"
#include "cli/text/output.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <ctime>

#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace gpurota::cli {
namespace {

constexpr int kPeriodMs = 1000;
constexpr const char* kEnter = "\033[?1049h\033[?25l";
constexpr const char* kLeave = "\033[?25h\033[?1049l";

// Makes SIGINT and similar signals readable; restores their settings when destroyed.
class Interrupts {
 public:
  Interrupts() {
    sigset_t wanted;
    (void)::sigemptyset(&wanted);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGWINCH}) (void)::sigaddset(&wanted, signal);
    (void)::sigprocmask(SIG_BLOCK, &wanted, &before_);
    fd_ = Fd(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  ~Interrupts() { (void)::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // True: continue. Returns early when the terminal's size changes, and when the reader of the
  // output has gone.
  bool wait(int milliseconds) {
    if (!wait_while_read(fd_.get(), milliseconds)) return false;
    signalfd_siginfo got{};
    while (::read(fd_.get(), &got, sizeof got) == static_cast<ssize_t>(sizeof got)) {
      if (got.ssi_signo != SIGWINCH) return false;
    }
    return true;
  }

 private:
  sigset_t before_{};
  Fd fd_;
};

// One connection, kept until it fails.
class Source {
 public:
  explicit Source(const Context& context) : context_(context) {}

  Result<proto::Status::Reply> ask() {
    if (!connection_) {
      GPUROTA_ASSIGN_OR_RETURN(connection_, context_.connect());
    }
    auto reply = connection_->call(proto::Status{});
    if (!reply) connection_.reset();
    return reply;
  }

 private:
  const Context& context_;
  std::optional<client::Connection> connection_;
};

winsize terminal_size() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0) size.ws_row = 24;
  return size;
}

std::string clock_text() {
  const std::time_t seconds = std::time(nullptr);
  std::tm local{};
  (void)::localtime_r(&seconds, &local);
  char text[64];
  return {text, std::strftime(text, sizeof text, "%H:%M:%S", &local)};
}

std::string picture(const Result<proto::Status::Reply>& reply, const StatusOptions& options) {
  if (!reply) return display_lines(reply.error().message) + "\nwaiting for the daemon\n";
  return status_picture(*reply, host_name(), options.form, terminal_layout(), now());
}

bool same(const Result<proto::Status::Reply>& a, const Result<proto::Status::Reply>& b) {
  return a ? b && *a == *b : !b && a.error().message == b.error().message;
}

}  // namespace

std::vector<std::string> screen_lines(const std::string& text, std::size_t height) {
  const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  const std::size_t most = lines > height ? height - 1 : lines;
  std::vector<std::string> out;
  std::size_t at = 0;
  for (std::size_t i = 0; i < most; ++i) {
    const std::size_t end = text.find('\n', at);
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  if (lines > most) out.push_back(fmt::format("… {} more lines", lines - most));
  return out;
}

std::string redraw_text(const std::vector<std::string>& before,
                        const std::vector<std::string>& after) {
  std::string out = before.empty() ? "\033[H\033[J" : "";
  for (std::size_t i = 0; i < after.size(); ++i) {
    if (i < before.size() && before[i] == after[i]) continue;
    // Moves to the line, because a newline after the last line of the screen would scroll.
    out += fmt::format("\033[{};1H{}\033[K", i + 1, after[i]);
  }
  if (before.size() > after.size()) {
    out += fmt::format("\033[{};1H\033[J", after.size() + 1);
  }
  return out;
}

int watch_status(const Context& context, const StatusOptions& options) {
  Interrupts interrupts;
  Source source(context);
  const bool terminal = ::isatty(STDOUT_FILENO) != 0;
  const auto uid = uid_of(options.form.whose);
  if (!uid) return failed(uid.error());
  std::optional<Result<proto::Status::Reply>> last;
  winsize drawn{};                 // the size that was drawn
  std::vector<std::string> shown;  // on the screen
  Result<void> printed = terminal ? print(kEnter) : Result<void>();
  do {
    Result<proto::Status::Reply> reply = source.ask();
    if (reply && options.memory_threshold) apply_threshold(*reply, *options.memory_threshold);
    if (reply && *uid) keep_only(*reply, **uid);
    const std::string text = clock_text() + "\n" + picture(reply, options);
    if (terminal) {
      const winsize size = terminal_size();
      const bool same_size = size.ws_row == drawn.ws_row && size.ws_col == drawn.ws_col;
      std::vector<std::string> lines = screen_lines(text, size.ws_row);
      printed = print(redraw_text(same_size ? shown : std::vector<std::string>(), lines));
      shown = std::move(lines);
      drawn = size;
    } else if (!last || !same(*last, reply)) {
      printed = print((last ? "\n" : "") + text);
    }
    last = std::move(reply);
  } while (printed && interrupts.wait(kPeriodMs));
  if (terminal) (void)print(kLeave);
  return printed ? kExitOk : failed(printed.error());
}

}  // namespace gpurota::cli
