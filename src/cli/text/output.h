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

// To stdout, all of it. kIo if that is impossible (a full disk; a closed pipe ends the process).
Result<void> print(std::string_view text);
// Waits until `fd` has something to read (-1: nothing) or the time is over (-1: for ever), or is
// woken. False, at once: nobody is there any more to read what is printed; the command ends without
// a word.
bool wait_while_read(int fd, int milliseconds);
// "gpurota: message" on stderr. Never fails and never blocks a caller for long.
void complain(std::string_view message);

// A message of several lines, each made safe for a terminal.
std::string display_lines(std::string_view message);

// The properties of stdout: how wide it is, and whether it takes colours.
Layout terminal_layout();
// Whether the locale has UTF-8 (LANG, LC_ALL).
bool takes_utf8();
// For what is shown as a duration until or since now.
WallTime now();
std::string host_name();

// Columns of the terminal that stdout is; 0 where it is none.
std::size_t terminal_width();
// Sets colour by --color ("always" or "never"); else colour is for terminals whose user has not
// refused it (NO_COLOR, TERM=dumb). Before anything is shown.
void choose_colour(const std::optional<std::string>& when);
bool wants_colour();

}  // namespace gpurota::cli
