// Allocations by family, below the API: made, found and freed. Under the driver's lock.
#pragma once

#include "sim/cuda/driver.h"

namespace gpurota::sim {

// Linear memory of the context's device.
CUresult allocate_linear(Driver& driver, Context& context, std::size_t bytes, CUdeviceptr* out);
CUresult allocate_managed(Driver& driver, Context& context, std::size_t bytes, unsigned flags,
                          CUdeviceptr* out);
CUresult allocate_host(Driver& driver, Context& context, std::size_t bytes, unsigned flags,
                       void** out);
// Gives back what an allocation, already taken out of the space, held.
void release(Driver& driver, const Allocation& allocation);
// The ordinal of a device of the machine among those this process sees; -1 when it does not.
int ordinal_of(const Driver& driver, int machine_device);

}  // namespace gpurota::sim
