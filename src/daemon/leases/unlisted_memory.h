// Whether the driver has taken back what a lease held that it lists no more. Pure.
//
// Somebody may wait for what a filler held, and will take all of it: its last processes may have
// allocated after the last look, and the driver may list them no more before it has taken it back.
#pragma once

#include "core/lease.h"
#include "daemon/gpus/gpu_table.h"

namespace gpurota::daemon {

// `empty_since`: when its last process was found to have ended.
bool has_returned(const GpuTable& gpus, const Lease& lease, TimePoint empty_since, TimePoint now);

}  // namespace gpurota::daemon
