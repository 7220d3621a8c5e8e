// Why somebody waits for GPUs, from what the queue has decided: the only place where such sentences
// are made (docs/design/control-protocol.md lists the codes). Pure.
#pragma once

#include "base/result.h"
#include "core/reason.h"
#include "lease/request_queue.h"
#include "lease/ways_out.h"

#include <string>
#include <string_view>
#include <vector>

namespace gpurota::lease {

using gpurota::Reason;
using gpurota::ReasonCode;

// Of a request that waits, without a remedy.
Reason waiting_reason(const Waiting& waiting);

// Of one that is refused instead, as it may not wait. `obstacles`: what is in its way on each GPU,
// which tells more than the next that will be free; empty: nothing but what others plan.
Reason refusal_reason(const Waiting& waiting, std::string_view obstacles);

// Whether the next sample of a GPU may show that the reason no longer holds: the memory of a
// program that has ended comes back in its own time.
bool is_passing(const Reason& reason);

// Why GPUs cannot be booked: who is in the way then.
Reason booking_obstacle(const NextFree& next);

// Of a booking whose time has come: no state of the machine can fill it any more; or the daemon
// could not make its lease.
Reason impossible_reason(const Error& error);
Reason cannot_start_reason(const Error& error);

// The changes that let a request for such a lease start at once: "starts now with --timeout 40m or
// with --swap"; empty: nothing helps.
std::string remedy_text(const std::vector<WayOut>& ways, LeaseKind kind);

}  // namespace gpurota::lease
