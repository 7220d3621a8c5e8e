// Sends log lines with their level and fields to the systemd journal, if systemd started the
// daemon.
#pragma once

#include "base/log.h"

#include <string>
#include <vector>

namespace gpurota::sys {

// Whether our stderr goes to the journal: JOURNAL_STREAM identifies the file of stderr.
bool stderr_is_journal();

// The journal fields of a line, each NAME=VALUE. The fields `lease`, `uid` and `gpu` (a UUID) have
// their own journal fields, which one can search: journalctl -u gpurotad LEASE=L12.
std::vector<std::string> journal_entry(log::Level level, const std::string& line,
                                       const log::Fields& fields);

// A sink for log::set_sink. A line that the journal does not accept goes to stderr.
log::Sink journal_sink();

}  // namespace gpurota::sys
