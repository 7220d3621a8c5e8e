// The driver as the tenants of this test use it: loaded by name, the simulated one or NVIDIA's; and
// as swap memory wants it (SwapCalls), on a stream of its own.
#pragma once

#include "interposer/swap/driver_calls.h"
#include "tests/driver/functions.h"

namespace turns_test {

// A context of device 0, current on this thread. False, with what failed on stderr.
bool open_driver();
// Makes the context current on another thread.
void use_driver();
gpurota::interposer::SwapCalls make_calls();

}  // namespace turns_test
