// How the library declares its thread-local variables.
#pragma once

// Thread-local storage that every thread has from its start: access needs no call and no
// allocation. The leak checker of gcc 12 does not understand that allocation.
#define GPUROTA_SIM_THREAD_LOCAL __attribute__((tls_model("initial-exec"))) thread_local
