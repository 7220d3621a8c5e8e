// Log lines to the systemd journal, with their level and what they are about, where the daemon was
// started by systemd.
#pragma once

#include "base/log.h"

#include <string>
#include <vector>

namespace gpurota::sys {

// Whether our stderr goes to the journal (JOURNAL_STREAM names the very file that stderr is).
bool stderr_is_journal();

// The journal's fields of a line, NAME=VALUE each. The fields `lease`, `uid` and `gpu` (a UUID)
// have names of their own, by which it is searched: journalctl -u gpurotad LEASE=L12.
std::vector<std::string> journal_entry(log::Level level, const std::string& line,
                                       const log::Fields& fields);

// For log::set_sink. A line that the journal does not take goes to stderr.
log::Sink journal_sink();

}  // namespace gpurota::sys
