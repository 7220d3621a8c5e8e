// Whether the process has a device open that reads and writes GPU memory by itself: InfiniBand and
// its kin, GPUDirect Storage, gdrcopy. Memory that such a device has registered must not move, and
// libgpurota cannot see a registration, because it is no call of the driver. So nothing of the
// process is evicted while the process has such a device open.
//
// Called by the worker before each eviction; costs a microsecond or two for each open descriptor.
#pragma once

#include <cstddef>

namespace gpurota::interposer {

// Writes the name of such a device to `out`, or why open devices cannot be seen. False: there is
// none.
bool find_rdma_device(char* out, size_t room);

}  // namespace gpurota::interposer
