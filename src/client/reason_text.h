// Why somebody waits, as the daemon says it, ready to print: the only place where a client of C++
// fills the time in. The daemon's text is foreign: nothing in it can move a cursor. Pure, but for
// the time zone.
#pragma once

#include "core/time.h"
#include "proto/types.h"

#include <string>

namespace gpurota::client {

// "waits for GPU 3: bob's program (L7) ends at 15:40".
std::string reason_text(const proto::Reason& reason, WallTime now);

// The same of what waits; of an older daemon its own words, but for fillers. Empty: it does not
// wait.
std::string reason_text(const proto::Request& request, WallTime now);
std::string reason_text(const proto::Job& job, WallTime now);
std::string reason_text(const proto::Booking& booking, WallTime now);
std::string reason_text(const proto::FillerPlace& place, WallTime now);

// With what the waiter can do behind it: "…; starts now with --timeout 40m".
std::string reason_with_remedy(const proto::Request& request, WallTime now);
std::string reason_with_remedy(const proto::Job& job, WallTime now);

}  // namespace gpurota::client
