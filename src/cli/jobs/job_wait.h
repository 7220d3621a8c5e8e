// `gpurota job wait`: which jobs have ended, and with what exit status. Pure; job_wait.cpp asks.
#pragma once

#include "proto/methods.h"

namespace gpurota::cli {

// Whether nothing more comes of it by itself.
bool has_ended(const proto::Job& job);
// Of one that has ended, as a shell has it: 0 where its last run ended well, that of its command,
// 128 and the signal; else kExitFailed.
int exit_status_of(const proto::Job& job);

}  // namespace gpurota::cli
