// Output of the CLI: results on stdout, everything else on stderr.
#pragma once

#include "base/result.h"
#include "cli/text/table.h"
#include "core/time.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace gpurota::cli {

// Prints all of it to stdout. kIo if that fails (a full disk; a closed pipe ends the process).
Result<void> print(std::string_view text);
// Waits until `fd` is readable (-1: no descriptor), the time is over (-1: no limit), or a signal
// comes. Returns false at once if the reader of stdout has gone: the command should then end
// silently.
bool wait_while_read(int fd, int milliseconds);
// Prints "gpurota: message" on stderr. Never fails, and never blocks for long.
void complain(std::string_view message);

// A message of several lines, each made safe for a terminal.
std::string display_lines(std::string_view message);

// The properties of stdout: its width, and whether it shows colours.
Layout terminal_layout();
// Whether the locale uses UTF-8 (LANG, LC_ALL).
bool takes_utf8();
// The time for durations until now or since now.
WallTime now();
std::string host_name();

// The columns of the terminal on stdout; 0: stdout is not a terminal.
std::size_t terminal_width();
// Sets colour from --color ("always" or "never"). Otherwise colour is used on terminals, unless the
// user disables it (NO_COLOR, TERM=dumb). Call before any output.
void choose_colour(const std::optional<std::string>& when);
bool wants_colour();

}  // namespace gpurota::cli
