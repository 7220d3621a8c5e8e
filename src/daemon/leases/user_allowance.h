// Counts from the leases what a user has and asks for: the input of lease/allowance.h. State thread
// only; decides nothing.
#pragma once

#include "daemon/gpus/gpu_table.h"
#include "lease/allowance.h"
#include "lease/placement.h"

#include <map>

namespace gpurota::daemon {

struct LeaseEntry;

// All leases of `uid`, those that are ending included: they still hold what they held. `gpu_time`
// is what they have used since `from`. Without fillers unless `fillers`.
lease::Holding holding_of(uid_t uid, const std::map<LeaseId, LeaseEntry>& entries,
                          const GpuTable& gpus, WallTime now, WallTime from, bool fillers = false);

// How much of GPUs a lease has, a slice as its part of one; and the GPU time of so much for some
// time.
double parts_of(const Lease& lease, const GpuTable& gpus);
std::chrono::seconds gpu_time_of(WallTime::duration time, double parts);

// The same of a booking, by the GPUs that are kept for it. Unlike above, a MIG instance counts as
// its part of a GPU.
double booked_parts(const std::vector<GpuUuid>& kept, const std::optional<SizeSpec>& memory,
                    const GpuTable& gpus);
// The same of a booking that is asked for: where its GPUs are not known yet, the largest count.
double booked_parts(const lease::PlacementRequest& request, const GpuTable& gpus);
// The GPUs of the machine that can be leased, counted so.
double machine_parts(const GpuTable& gpus);

// The amount that a request asks for before its GPUs are known: where that matters, the largest of
// the machine count.
lease::Asking asking_of(const lease::PlacementRequest& request, const GpuTable& gpus);

}  // namespace gpurota::daemon
