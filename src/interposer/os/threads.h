// Threads of our own in somebody else's program: they take no signals and are never joined.
#pragma once

namespace gpurota::interposer {

// False if no thread can be created.
bool start_thread(void* (*run)(void*), void* argument);

}  // namespace gpurota::interposer
