// driver_list [FUNCTION]: prints the UUID of each device that the driver shows. If FUNCTION is
// given, first calls it without arguments.
#include "abi/cuda_abi.h"

#include <cstdio>

#include <dlfcn.h>

namespace {

template <class Function>
Function find(const char* name) {
  return reinterpret_cast<Function>(::dlsym(::dlopen("libcuda.so.1", RTLD_NOW), name));
}

}  // namespace

int main(int argc, char** argv) {
  int count = 0;
  if (find<CUresult (*)(unsigned)>("cuInit")(0) != CUDA_SUCCESS) return 1;
  if (argc > 1) (void)find<CUresult (*)()>(argv[1])();
  if (find<CUresult (*)(int*)>("cuDeviceGetCount")(&count) != CUDA_SUCCESS) return 1;
  for (int device = 0; device < count; ++device) {
    CUuuid id = {};
    char name[128] = {};
    (void)find<CUresult (*)(CUuuid*, CUdevice)>("cuDeviceGetUuid_v2")(&id, device);
    (void)find<CUresult (*)(char*, int, CUdevice)>("cuDeviceGetName")(name, sizeof name, device);
    const auto* b = reinterpret_cast<const unsigned char*>(id.bytes);
    const bool is_instance = __builtin_strstr(name, " MIG ") != nullptr;
    std::printf("%s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x\n",
                is_instance ? "MIG" : "GPU", b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8],
                b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
  }
  return 0;
}
