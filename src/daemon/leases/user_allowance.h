// Counts from the leases what a user has and asks for: the input of lease/allowance.h. State thread
// only; decides nothing.
#pragma once

#include "daemon/gpus/gpu_table.h"
#include "lease/allowance.h"
#include "lease/placement.h"

#include <map>

namespace gpurota::daemon {

struct LeaseEntry;

// The holdings of all leases of `uid`. Ending leases count, because they still hold everything that
// they held. `gpu_time` is the GPU time of the leases since `from`. Fillers count only if
// `fillers`.
lease::Holding holding_of(uid_t uid, const std::map<LeaseId, LeaseEntry>& entries,
                          const GpuTable& gpus, WallTime now, WallTime from, bool fillers = false);

// The number of GPUs that a lease has, with a slice counted as a fraction of a GPU. gpu_time_of()
// is the GPU time of such a number of GPUs in `time`.
double parts_of(const Lease& lease, const GpuTable& gpus);
std::chrono::seconds gpu_time_of(WallTime::duration time, double parts);

// The number of GPUs of a booking for which the GPUs `kept` are kept. Unlike in parts_of(), a MIG
// instance counts as a fraction of a GPU.
double booked_parts(const std::vector<GpuUuid>& kept, const std::optional<SizeSpec>& memory,
                    const GpuTable& gpus);
// The number of GPUs of a requested booking. If its GPUs are not known yet, the largest GPUs count.
double booked_parts(const lease::PlacementRequest& request, const GpuTable& gpus);
// The number of GPUs of the machine that can be leased, counted like booked_parts().
double machine_parts(const GpuTable& gpus);

// The amount that a request asks for, before its GPUs are known. If the amount depends on the GPUs,
// the largest GPUs of the machine count.
lease::Asking asking_of(const lease::PlacementRequest& request, const GpuTable& gpus);

// The most of a GPU's compute time to which the shares of a user there may add up when a lease or
// request of this kind with the share `own` is added. A limit that is lowered later leaves `own` as
// it is. Pods have no such limit.
int most_compute(const UserLimits& limits, LeaseKind kind, int own);

}  // namespace gpurota::daemon
