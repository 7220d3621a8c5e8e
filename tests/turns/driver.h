// The driver for the tenants of this test, simulated or NVIDIA's, loaded by name. make_calls()
// returns its calls in the form that swap memory needs (SwapCalls), on a stream of their own.
#pragma once

#include "interposer/swap/driver_calls.h"
#include "tests/driver/functions.h"

namespace turns_test {

// Makes a context of device 0, current on this thread. False, with the error on stderr.
bool open_driver();
// Makes the context current on another thread.
void use_driver();
gpurota::interposer::SwapCalls make_calls();

}  // namespace turns_test
