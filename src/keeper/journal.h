// The journal as the destination of a job's output. Used by the keeper, in the child that becomes
// the command, and by the daemon, which refuses a job if there is no journal.
#pragma once

#include "base/fd.h"
#include "base/result.h"

#include <string>

namespace gpurota::keeper {

// The name for finding its lines: journalctl -t.
std::string journal_name(const std::string& job);
// kUnavailable if no journal runs here.
Result<void> check_journal();
// Opened with the caller's rights: the lines belong to that user.
Result<Fd> open_journal(const std::string& job);

}  // namespace gpurota::keeper
