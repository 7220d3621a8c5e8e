// Memory of a swap tenant that other processes open by its handle: the owner's side
// (abi/wire_share.h). The opener's is opened.h.
//
// Shared memory stays on the GPU from then on, and counts as wired.
#pragma once

#include "interposer/swap/tenant.h"

namespace gpurota::interposer {

// Ours, in the place of the driver's. `beginning` sets it apart: the driver's own begin otherwise.
struct SharedHandle {
  char beginning[8];
  gpurota_shared_name name;
};
inline constexpr char kSharedHandle[8] = {'g', 'p', 'u', 'r', 'o', 't', 'a', '1'};

// Of the allocation that `address` lies in. False: that does not move, so the driver answers. Any
// thread; may wait for a turn.
bool swap_share(State& s, uint64_t address, CUipcMemHandle* out, CUresult* result);
// The allocation is about to end. Waits while the worker makes descriptors of it.
void swap_unshare(State& s, uint64_t address);

// The helper's: another process asks, and waits at the other end of this socket, which is ours from
// here on.
void take_open(State& s, const gpurota_shared_name& name, int fd);
// The worker's: answers those that have asked.
void answer_opens(State& s);

}  // namespace gpurota::interposer
