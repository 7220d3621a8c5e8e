// The daemon's reason for a wait, ready to print: the only place where a C++ client fills in the
// time. The daemon's text is untrusted: nothing in it can move a cursor. Pure, but for the time
// zone.
#pragma once

#include "core/time.h"
#include "proto/types.h"

#include <string>

namespace gpurota::client {

// "waits for GPU 3: bob's program (L7) ends at 15:40".
std::string reason_text(const proto::Reason& reason, WallTime now);

// The reason why a request (job, …) waits. From an older daemon: its own text, except for fillers.
// Empty: it does not wait.
std::string reason_text(const proto::Request& request, WallTime now);
std::string reason_text(const proto::Job& job, WallTime now);
std::string reason_text(const proto::Booking& booking, WallTime now);
std::string reason_text(const proto::FillerPlace& place, WallTime now);

// The reason, followed by what its owner can do: "…; starts now with --timeout 40m".
std::string reason_with_remedy(const proto::Request& request, WallTime now);
std::string reason_with_remedy(const proto::Job& job, WallTime now);

}  // namespace gpurota::client
