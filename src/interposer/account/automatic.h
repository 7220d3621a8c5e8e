// Leases for programs that have none in their environment: docs/design/automatic-leases.md from the
// program's side.
//
// Called by the cuInit hook, on any thread of the program. Asks the daemon for a lease if one is
// pending, and lets the driver see only the GPUs that the daemon names. Never asks in a program
// that does not use CUDA.
#pragma once

namespace gpurota::interposer {

// Whether a limit can be enforced in this program. False with a C library other than glibc, because
// the driver and this library are built for glibc.
bool can_hold();
// Call before the driver is initialised. False: this program must get no GPU.
bool may_initialise();

}  // namespace gpurota::interposer
