// Log lines to the systemd journal, with their level, where the daemon was started by systemd.
#pragma once

#include "base/log.h"

namespace gpurota::sys {

// Whether our stderr goes to the journal (JOURNAL_STREAM names the very file that stderr is).
bool stderr_is_journal();

// For log::set_sink. A line that the journal does not take goes to stderr.
log::Sink journal_sink();

}  // namespace gpurota::sys
