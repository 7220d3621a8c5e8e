// Leases for programs that have none in their environment: docs/design/automatic-leases.md from the
// program's side.
//
// Called by the cuInit hook, on any thread of the program. Asks the daemon once there is something
// to hold, and lets the driver see only the GPUs that it names. Never asks in a program that does
// not use CUDA.
#pragma once

namespace gpurota::interposer {

// Whether a limit can be held in this program: not with another C library than glibc, of which
// neither the driver nor this library is.
bool can_hold();
// Before the driver is initialised. False if this program is to have no GPU.
bool may_initialise();

}  // namespace gpurota::interposer
