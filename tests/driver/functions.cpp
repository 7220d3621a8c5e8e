#include "tests/driver/functions.h"

#include <cstdio>
#include <cstdlib>

#include <dlfcn.h>

void* driver_library() {
  static void* library = ::dlopen("libcuda.so.1", RTLD_NOW);
  return library;
}

bool load_driver() {
  void* library = driver_library();
  if (library == nullptr) {
    std::fprintf(stderr, "libcuda.so.1 cannot be used: %s\n", ::dlerror());
    return false;
  }
  bool found_all = true;
#define DRIVER_LOAD(name, ...)                                      \
  name = reinterpret_cast<decltype(name)>(::dlsym(library, #name)); \
  if (name == nullptr) {                                            \
    std::fprintf(stderr, "the driver has no %s\n", #name);          \
    found_all = false;                                              \
  }
  DRIVER_FUNCTIONS(DRIVER_LOAD)
#undef DRIVER_LOAD
  return found_all;
}

bool is_simulated() { return ::getenv("GPUROTA_SIM_DIR") != nullptr; }
