// `gpurota status --watch`: the status again and again until it is interrupted.
//
// On a terminal it is redrawn in place, on the alternate screen, which is left as it was found
// however the watching ends. Into a pipe or a file goes a new picture whenever something has
// changed; it ends when nobody reads the pipe any more. A daemon that goes away is waited for.
#pragma once

#include "cli/commands.h"

#include <cstddef>
#include <string>
#include <vector>

namespace gpurota::cli {

int watch_status(const Context& context, const StatusOptions& options);

// The lines of a picture on a terminal of `height` lines: what does not fit is replaced by a last
// line that says how much it is. Pure.
std::vector<std::string> screen_lines(const std::string& text, std::size_t height);
// The bytes that change a screen from `before` to `after`: only the lines that differ, so that
// little is sent over a slow line. Without `before` all of them, whatever is there. Pure.
std::string redraw_text(const std::vector<std::string>& before,
                        const std::vector<std::string>& after);

}  // namespace gpurota::cli
