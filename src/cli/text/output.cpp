#include "cli/text/output.h"

#include "base/text.h"

#include <array>
#include <cerrno>
#include <clocale>
#include <cstdlib>
#include <cstring>
#include <string>

#include <langinfo.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/utsname.h>
#include <unistd.h>

namespace gpurota::cli {
namespace {

std::optional<bool> colour_choice;  // of --color; empty: as the terminal says

Result<void> write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail_errno("cannot write", errno);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

}  // namespace

Result<void> print(std::string_view text) { return write_all(STDOUT_FILENO, text); }

bool wait_while_read(int fd, int milliseconds) {
  // poll() always reports errors and hang-ups.
  std::array<pollfd, 2> ready{{{fd, POLLIN, 0}, {STDOUT_FILENO, 0, 0}}};
  (void)::poll(ready.data(), ready.size(), milliseconds);
  return (ready[1].revents & (POLLERR | POLLHUP)) == 0;
}

void complain(std::string_view message) {
  // A single write, so that lines of several processes do not mix.
  (void)write_all(STDERR_FILENO, "gpurota: " + std::string(message) + "\n");
}

std::string display_lines(std::string_view message) {
  std::string out;
  while (true) {
    const std::size_t end = message.find('\n');
    out += display_text(message.substr(0, end), 1000);
    if (end == std::string_view::npos) return out;
    out += '\n';
    message.remove_prefix(end + 1);
  }
}

bool takes_utf8() {
  (void)std::setlocale(LC_CTYPE, "");
  return std::strcmp(::nl_langinfo(CODESET), "UTF-8") == 0;
}

Layout terminal_layout() { return {terminal_width(), wants_colour(), !takes_utf8()}; }

WallTime now() {
  return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

std::string host_name() {
  utsname names{};
  return ::uname(&names) == 0 ? names.nodename : "?";
}

std::size_t terminal_width() {
  if (::isatty(STDOUT_FILENO) == 0) return 0;
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

void choose_colour(const std::optional<std::string>& when) {
  if (when && *when != "auto") colour_choice = *when == "always";
}

bool wants_colour() {
  if (colour_choice) return *colour_choice;
  const char* refused = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) != 0 && (refused == nullptr || *refused == '\0') &&
         term != nullptr && std::strcmp(term, "dumb") != 0;
}

}  // namespace gpurota::cli
