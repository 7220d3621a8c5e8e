// gpurota top: what happens on the GPUs now, for people who watch it.
#include "cli/commands.h"
#include "cli/text/output.h"
#include "cli/top/frame.h"
#include "cli/top/live.h"
#include "cli/top/source.h"
#include "cli/top/terminal.h"

#include <cstdlib>
#include <cstring>

#include <sys/ioctl.h>
#include <unistd.h>

namespace gpurota::cli {
namespace topview {
namespace {

constexpr std::size_t kPlainWidth = 80;

// The value of a variable such as COLUMNS; 0: not set.
std::size_t size_in(const char* variable) {
  const char* const text = std::getenv(variable);
  const long value = text == nullptr ? 0 : std::strtol(text, nullptr, 10);
  return value > 0 && value <= static_cast<long>(kMostTopSize) ? static_cast<std::size_t>(value)
                                                               : 0;
}

// The size from the options; else the terminal's, or COLUMNS and LINES, which watch(1) and others
// set. A height of 0: all lines.
Frame frame_for(const TopOptions& options) {
  Frame frame{
      .width = size_in("COLUMNS"), .height = size_in("LINES"), .now = now(), .host = host_name()};
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    frame.width = size.ws_col;
    frame.height = 0;
  }
  if (frame.width == 0) frame.width = kPlainWidth;
  if (options.width > 0) {
    frame.width = options.width;
    frame.height = options.height;
  }
  return frame;
}

// Whether the terminal can be drawn on, and standard input is a terminal, too.
bool can_draw() {
  const char* const name = std::getenv("TERM");
  return ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0 && name != nullptr &&
         *name != '\0' && std::strcmp(name, "dumb") != 0;
}

int show_once(const Context& context, const TopOptions& options) {
  Source source(context);
  auto answers = source.ask();
  if (!answers) return failed(answers.error());
  Model model;
  model.take(std::move(*answers));
  Frame frame = frame_for(options);
  if (frame.height == 0) frame.height = whole_height(model, State{});
  Grid grid = draw(model, State{}, frame);
  if (!takes_utf8()) grid.make_ascii();
  return shown(wants_colour() ? coloured_text(grid) : plain_text(grid));
}

}  // namespace
}  // namespace topview

int top(const Context& context, const TopOptions& options) {
  if (!options.once && topview::can_draw()) {
    if (!topview::knows_terminal()) {
      complain(
          "this machine does not know the terminal that TERM names, so this is one picture. To "
          "watch: TERM=xterm gpurota top, or gpurota status --watch");
      return topview::show_once(context, options);
    }
    return topview::run_live(context, !takes_utf8());
  }
  return topview::show_once(context, options);
}

}  // namespace gpurota::cli
