#include "driver.h"

#include <cstdio>
#include <cstdlib>

#include <dlfcn.h>

namespace demo {
namespace {

[[noreturn]] void give_up(const char* what, const char* why) {
  std::fprintf(stderr, "%s: %s\n", what, why);
  std::exit(3);
}

template <class Function>
void look_up(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  if (*function == nullptr) give_up(name, "libcuda.so.1 does not have it");
}

Driver load() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) give_up("no CUDA driver", dlerror());
  Driver driver{};
  look_up(library, "cuInit", &driver.init);
  look_up(library, "cuDeviceGetCount", &driver.device_count);
  look_up(library, "cuDeviceGet", &driver.device_get);
  look_up(library, "cuDeviceGetName", &driver.device_name);
  look_up(library, "cuDeviceTotalMem_v2", &driver.device_total);
  look_up(library, "cuDevicePrimaryCtxRetain", &driver.context_retain);
  look_up(library, "cuCtxSetCurrent", &driver.context_set);
  look_up(library, "cuCtxSynchronize", &driver.context_synchronize);
  look_up(library, "cuMemGetInfo_v2", &driver.mem_info);
  look_up(library, "cuMemAlloc_v2", &driver.mem_alloc);
  look_up(library, "cuMemFree_v2", &driver.mem_free);
  look_up(library, "cuMemsetD32_v2", &driver.set_words);
  look_up(library, "cuMemcpyDtoH_v2", &driver.copy_to_host);
  look_up(library, "cuModuleLoadData", &driver.module_load);
  look_up(library, "cuModuleGetFunction", &driver.module_function);
  look_up(library, "cuLaunchKernel", &driver.launch);
  look_up(library, "cuGetErrorName", &driver.error_name);
  return driver;
}

}  // namespace

const Driver& driver() {
  static const Driver instance = load();
  return instance;
}

const char* error_name(CUresult result) {
  const char* name = nullptr;
  if (driver().error_name(result, &name) != CUDA_SUCCESS || name == nullptr) return "CUDA_ERROR_?";
  return name;
}

void check(CUresult result, const char* what) {
  if (result != CUDA_SUCCESS) give_up(what, error_name(result));
}

}  // namespace demo
