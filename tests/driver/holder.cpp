// driver_holder MEBIBYTES [hold|churn|fork|exec]: allocates this much on GPU 0, writes a byte to
// its output, and then
//   hold    waits to be killed
//   churn   allocates and frees forever
//   fork    leaves a child that waits, and exits
//   exec    becomes a program that does not use the GPU, and waits
#include "abi/cuda_abi.h"

#include <cstdlib>
#include <string>

#include <dlfcn.h>
#include <unistd.h>

namespace {

template <class Function>
Function find(const char* name) {
  return reinterpret_cast<Function>(::dlsym(::dlopen("libcuda.so.1", RTLD_NOW), name));
}

[[noreturn]] void wait_to_be_killed() {
  while (true) ::pause();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::size_t bytes = std::strtoull(argv[1], nullptr, 10) << 20;
  const std::string then = argc > 2 ? argv[2] : "hold";
  const auto allocate = find<CUresult (*)(CUdeviceptr*, std::size_t)>("cuMemAlloc_v2");
  const auto release = find<CUresult (*)(CUdeviceptr)>("cuMemFree_v2");
  CUcontext context = nullptr;
  CUdeviceptr memory = 0;
  const bool good = find<CUresult (*)(unsigned)>("cuInit")(0) == CUDA_SUCCESS &&
                    find<CUresult (*)(CUcontext*, unsigned, CUdevice)>("cuCtxCreate_v2")(
                        &context, 0, 0) == CUDA_SUCCESS &&
                    allocate(&memory, bytes) == CUDA_SUCCESS;
  if (!good || ::write(1, "+", 1) != 1) return 1;
  if (then == "churn") {
    while (allocate(&memory, bytes) == CUDA_SUCCESS && release(memory) == CUDA_SUCCESS) {
    }
    return 1;
  }
  if (then == "fork" && ::fork() != 0) return 0;
  if (then == "exec") ::execlp("sleep", "sleep", "60", static_cast<char*>(nullptr));
  wait_to_be_killed();
}
