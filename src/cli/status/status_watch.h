// `gpurota status --watch`: repeats the status until it is interrupted.
//
// On a terminal the picture is redrawn in place on the alternate screen, and the screen is restored
// however the watch ends. To a pipe or a file a new picture is written after each change; the watch
// ends when nobody reads the pipe any more. If the daemon goes down, the watch waits for it.
#pragma once

#include "cli/commands.h"

#include <cstddef>
#include <string>
#include <vector>

namespace gpurota::cli {

int watch_status(const Context& context, const StatusOptions& options);

// The lines of a picture on a terminal of `height` lines. If there is no room for all lines, a last
// line replaces the rest, and counts them. Pure.
std::vector<std::string> screen_lines(const std::string& text, std::size_t height);
// The bytes that change a screen from `before` to `after`: only the lines that differ, to send
// little over a slow line. Without `before`: all lines, whatever the screen shows. Pure.
std::string redraw_text(const std::vector<std::string>& before,
                        const std::vector<std::string>& after);

}  // namespace gpurota::cli
