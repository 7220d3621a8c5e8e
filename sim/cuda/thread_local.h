// How the library declares its thread-local variables.
#pragma once

// In the space every thread has from the start: no call and no allocation to reach it, and none
// that the leak checker of gcc 12 would have to understand.
#define GPUROTA_SIM_THREAD_LOCAL __attribute__((tls_model("initial-exec"))) thread_local
