// The journal as the place where a job's output goes. Used by the keeper, in the child that becomes
// the command, and by the daemon, which refuses what cannot be.
#pragma once

#include "base/fd.h"
#include "base/result.h"

#include <string>

namespace gpurota::keeper {

// By which its lines are found: journalctl -t.
std::string journal_name(const std::string& job);
// kUnavailable if no journal runs here.
Result<void> check_journal();
// Opened with the rights of whoever calls: the lines are that user's.
Result<Fd> open_journal(const std::string& job);

}  // namespace gpurota::keeper
