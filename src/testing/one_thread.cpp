// Linked into tests without THREADS (gpurota_test in cmake/GpurotaModule.cmake). The thread
// sanitizer skips these tests, so they must not start a thread.
#include <cstdio>
#include <cstdlib>

#include <pthread.h>

extern "C" int pthread_create(pthread_t* /*thread*/, const pthread_attr_t* /*attributes*/,
                              void* (* /*start*/)(void*), void* /*argument*/) noexcept {
  std::fputs("This test starts a thread: say THREADS where CMake is told of it.\n", stderr);
  std::abort();
}
