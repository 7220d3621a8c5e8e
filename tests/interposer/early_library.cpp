// Looks up driver functions in its constructor, as cuBLAS does, and allocates in its destructor.
// The constructor runs before that of libgpurota, the destructor after the program has ended.
#include "early.h"

#include <dlfcn.h>
#include <unistd.h>

Early early;

namespace {

template <typename F>
void find(F** out, void* handle, const char* name) {
  *out = reinterpret_cast<F*>(::dlsym(handle, name));
}

__attribute__((constructor)) void on_load() {
  void* driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  find(&early.alloc_by_dlsym, RTLD_DEFAULT, "cuMemAlloc_v2");
  find(&early.alloc_by_handle, driver, "cuMemAlloc_v2");
  find(&early.free, driver, "cuMemFree_v2");
  CUresult (*get_proc)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
  find(&get_proc, driver, "cuGetProcAddress_v2");
  void* found = nullptr;
  CUdriverProcAddressQueryResult status{};
  if (get_proc != nullptr) get_proc("cuMemAlloc", &found, 12000, 0, &status);
  early.alloc_by_get_proc = reinterpret_cast<decltype(early.alloc_by_get_proc)>(found);
}

__attribute__((destructor)) void on_exit() {
  CUdeviceptr p = 0;
  if (!early.exhausted) return;
  if (early.alloc_by_dlsym(&p, 1 << 20) == CUDA_SUCCESS) _exit(6);
}

}  // namespace
