// driver_holder MEBIBYTES: holds that much of GPU 0, writes a byte to its output, waits for its end.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

#include "abi/cuda_abi.h"

namespace {

template <class Function>
Function find(const char* name) {
  return reinterpret_cast<Function>(::dlsym(::dlopen("libcuda.so.1", RTLD_NOW), name));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::size_t bytes = std::strtoull(argv[1], nullptr, 10) << 20;
  CUcontext context = nullptr;
  CUdeviceptr memory = 0;
  const bool good =
      find<CUresult (*)(unsigned)>("cuInit")(0) == CUDA_SUCCESS &&
      find<CUresult (*)(CUcontext*, unsigned, CUdevice)>("cuCtxCreate_v2")(&context, 0, 0) ==
          CUDA_SUCCESS &&
      find<CUresult (*)(CUdeviceptr*, std::size_t)>("cuMemAlloc_v2")(&memory, bytes) == CUDA_SUCCESS;
  if (!good || ::write(1, "+", 1) != 1) return 1;
  while (true) ::pause();
}
