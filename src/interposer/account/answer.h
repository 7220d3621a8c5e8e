// The answer to a request for memory, or for a context.
#pragma once

namespace gpurota::interposer {

enum class Answer {
  kYes,
  kNo,        // the lease has no room
  kAway,      // no daemon answered within GPUROTA_WAIT_MS
  kCrowded,   // the lease or its user has as many processes as it may
  kOver,      // there is no such lease, or it is another user's
  kNoThread,  // the kernel makes no thread for this process, and memory that moves needs one
};

}  // namespace gpurota::interposer
