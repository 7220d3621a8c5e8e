// `gpurota job wait`: which jobs have ended, and with what exit status. Pure; job_wait.cpp asks.
#pragma once

#include "proto/methods.h"

namespace gpurota::cli {

// Whether the job has ended and is not started again by itself.
bool has_ended(const proto::Job& job);
// The exit status of a job that has ended, as a shell has it: 0 where its last run ended well, else
// the exit code of its command, 128 and the signal, or kExitFailed.
int exit_status_of(const proto::Job& job);

}  // namespace gpurota::cli
