// `gpurota status --watch`: the status again and again until it is interrupted.
//
// On a terminal it is redrawn in place, on the alternate screen, which is left as it was found however
// the watching ends. Into a pipe or a file goes a new picture whenever something has changed; it ends when
// nobody reads the pipe any more. A daemon that goes away is waited for.
#pragma once

#include "cli/commands.h"

namespace gpurota::cli {

int watch_status(const Context& context, const StatusOptions& options);

// One picture on a terminal of `height` lines: each line cleared behind its end, what does not fit
// replaced by a last line that says how much it is. Pure.
std::string screen_text(const std::string& text, std::size_t height);

}  // namespace gpurota::cli
