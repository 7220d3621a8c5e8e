// Starts the command of a job as its owner: who they are, where, with what environment. Everything
// that could be wrong is found out in the child, with the owner's rights, and told in words.
#pragma once

#include "base/fd.h"
#include "base/result.h"
#include "jobs/record.h"

namespace gpurota::keeper {

struct Command {
  pid_t pid = 0;
  Fd output;  // what it writes, to both streams
};

// kDenied for an account that is gone, has another name than when the job was added, or has expired
// (where we are not root we start our own commands only, which needs no account); kNotFound for a
// working directory that is not there; and whatever else stopped it. When it returns, `gpurota run`
// is executing.
Result<Command> start_command(const jobs::KeeperOrders& orders);

}  // namespace gpurota::keeper
