// A library that is linked to the driver, for bound_program. Returns CUDA's error.
#include <cstddef>
#include <cstdint>

extern "C" {
int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void** context, int device);
int cuCtxSetCurrent(void* context);
int cuMemAlloc_v2(std::uint64_t* memory, std::size_t bytes);

__attribute__((visibility("default"))) int plugin_hold(std::size_t bytes) {
  void* context = nullptr;
  std::uint64_t memory = 0;
  if (const int error = cuInit(0); error != 0) return error;
  if (const int error = cuDevicePrimaryCtxRetain(&context, 0); error != 0) return error;
  if (const int error = cuCtxSetCurrent(context); error != 0) return error;
  return cuMemAlloc_v2(&memory, bytes);
}
}
