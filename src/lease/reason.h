// Why a user waits for GPUs, from the queue's decision: the only place where such sentences are
// made (docs/design/control-protocol.md lists the codes). Pure.
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

// For a waiting request, without a remedy.
Reason waiting_reason(const Waiting& waiting);

// For a request that is refused because it may not wait. `obstacles`: the obstacle on each GPU,
// which says more than the next GPU to be free; empty: only the plans of others are in the way.
Reason refusal_reason(const Waiting& waiting, std::string_view obstacles);

// Whether the next sample of a GPU may show that the reason no longer applies: the memory of an
// ended program is freed with a delay.
bool is_passing(const Reason& reason);

// Why GPUs cannot be booked: what is in the way then.
Reason booking_obstacle(const NextFree& next);

// For a booking whose time has come: no state of the machine can fill it any more; or the daemon
// could not make its lease.
Reason impossible_reason(const Error& error);
Reason cannot_start_reason(const Error& error);

// The changes that let a request for such a lease start at once: "starts now with --timeout 40m or
// with --swap"; empty: none.
std::string remedy_text(const std::vector<WayOut>& ways, LeaseKind kind);

}  // namespace gpurota::lease
