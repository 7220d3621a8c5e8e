// Starts the command of a job as its owner: account, working directory and environment. Everything
// is checked in the child, with the owner's rights, and a failure is returned as text.
#pragma once

#include "base/fd.h"
#include "base/result.h"
#include "jobs/record.h"

namespace gpurota::keeper {

struct Command {
  pid_t pid = 0;
  Fd output;  // the read end of its stdout and stderr
};

// kDenied for an account that is gone, has been renamed since the job was added, or has expired. (A
// keeper that is not root starts only its own user's commands, which need no account.) kNotFound
// for a working directory that does not exist. Other errors for whatever else failed. On success
// `gpurota run` is executing.
Result<Command> start_command(const jobs::KeeperOrders& orders);

}  // namespace gpurota::keeper
