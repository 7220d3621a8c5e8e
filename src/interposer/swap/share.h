// Memory of a swap tenant that other processes open by its handle: the owner's side
// (abi/wire_share.h). The opener's side is opened.h.
//
// Once memory is shared, it stays on the GPU and counts as wired.
#pragma once

#include "interposer/swap/tenant.h"

namespace gpurota::interposer {

// Our handle, in the place of a driver's handle. `beginning` tells the two apart: no handle of the
// driver begins like this.
struct SharedHandle {
  char beginning[8];
  gpurota_shared_name name;
};
inline constexpr char kSharedHandle[8] = {'g', 'p', 'u', 'r', 'o', 't', 'a', '1'};

// Makes a handle of the allocation that `address` lies in. False: the allocation does not move, so
// the driver answers. Any thread; may wait for a turn.
bool swap_share(State& s, uint64_t address, CUipcMemHandle* out, CUresult* result);
// The allocation is about to end. Waits while the worker makes descriptors of it.
void swap_unshare(State& s, uint64_t address);

// Called by the helper: another process asks, and waits at the other end of `fd`, which this
// function owns from now on.
void take_open(State& s, const gpurota_shared_name& name, int fd);
// Called by the worker: answers the processes that have asked.
void answer_opens(State& s);

}  // namespace gpurota::interposer
