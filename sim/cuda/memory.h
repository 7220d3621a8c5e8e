// Allocations by family, below the API: making, finding and freeing them. Under the driver's lock.
#pragma once

#include "sim/cuda/driver.h"

namespace gpurota::sim {

// Linear memory of the context's device.
CUresult allocate_linear(Driver& driver, Context& context, std::size_t bytes, CUdeviceptr* out);
CUresult allocate_managed(Driver& driver, Context& context, std::size_t bytes, unsigned flags,
                          CUdeviceptr* out);
CUresult allocate_host(Driver& driver, Context& context, std::size_t bytes, unsigned flags,
                       void** out);
// Frees what an allocation held; the caller has already removed it from the space.
void release(Driver& driver, const Allocation& allocation);
// The ordinal in this process of a device of the machine; -1 if the process does not see the
// device.
int ordinal_of(const Driver& driver, int machine_device);

}  // namespace gpurota::sim
