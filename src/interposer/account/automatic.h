// Leases for programs that have none in their environment: docs/design/automatic-leases.md from the
// program's side.
//
// Called by the cuInit hook, on any thread of the program. Asks the daemon once there is something to
// hold, and lets the driver see only the GPUs that it names. Never asks in a program that does not use CUDA.
#pragma once

namespace gpurota::interposer {

// Before the driver is initialised. False if this program is to have no GPU.
bool may_initialise();

}  // namespace gpurota::interposer
