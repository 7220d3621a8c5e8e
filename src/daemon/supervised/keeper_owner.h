// Who may have commands that the daemon runs, jobs and fillers: a daemon that is root's runs those of all known
// users, another one those of its own. Used by Jobs and Fillers, on the state thread.
#pragma once

#include "base/result.h"
#include "ports/processes.h"

#include <sys/types.h>

namespace gpurota::daemon {

// `what`: "job". `own_uid`: the daemon's. kDenied; or kUnavailable while it is not known what the user is called,
// which is held against the account at every start: the name service has not answered yet, or there is none.
Result<void> check_keeper_owner(ports::Processes& processes, uid_t own_uid, uid_t uid,
                                const char* what);

}  // namespace gpurota::daemon
