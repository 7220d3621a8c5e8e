// The driver as the tenants of this test use it: loaded by name, the simulated one or NVIDIA's; and as
// swap memory wants it (SwapCalls), on a stream of its own.
#pragma once

#include "abi/cuda_abi.h"
#include "interposer/swap/driver_calls.h"

#include <cstddef>
#include <cstdint>

namespace turns_test {

#define TURNS_FUNCTIONS(X)                                                                        \
  X(cuInit, unsigned)                                                                             \
  X(cuDeviceGet, CUdevice*, int)                                                                  \
  X(cuDevicePrimaryCtxRetain, CUcontext*, CUdevice)                                               \
  X(cuCtxSetCurrent, CUcontext)                                                                   \
  X(cuStreamCreate, CUstream*, unsigned)                                                          \
  X(cuStreamQuery, CUstream)                                                                      \
  X(cuStreamSynchronize, CUstream)                                                                \
  X(cuEventCreate, CUevent*, unsigned)                                                            \
  X(cuEventRecord, CUevent, CUstream)                                                             \
  X(cuEventSynchronize, CUevent)                                                                  \
  X(cuMemAddressReserve, CUdeviceptr*, std::size_t, std::size_t, CUdeviceptr, unsigned long long) \
  X(cuMemAddressFree, CUdeviceptr, std::size_t)                                                   \
  X(cuMemCreate, CUmemGenericAllocationHandle*, std::size_t, const CUmemAllocationProp*,          \
    unsigned long long)                                                                           \
  X(cuMemRelease, CUmemGenericAllocationHandle)                                                   \
  X(cuMemMap, CUdeviceptr, std::size_t, std::size_t, CUmemGenericAllocationHandle,                \
    unsigned long long)                                                                           \
  X(cuMemUnmap, CUdeviceptr, std::size_t)                                                         \
  X(cuMemSetAccess, CUdeviceptr, std::size_t, const CUmemAccessDesc*, std::size_t)                \
  X(cuMemcpyDtoHAsync_v2, void*, CUdeviceptr, std::size_t, CUstream)                              \
  X(cuMemcpyHtoDAsync_v2, CUdeviceptr, const void*, std::size_t, CUstream)                        \
  X(cuMemsetD32Async, CUdeviceptr, unsigned, std::size_t, CUstream)                               \
  X(cuMemHostRegister_v2, void*, std::size_t, unsigned)                                           \
  X(cuMemHostUnregister, void*)

#define TURNS_DECLARE(name, ...) inline CUresult (*name)(__VA_ARGS__) = nullptr;
TURNS_FUNCTIONS(TURNS_DECLARE)
#undef TURNS_DECLARE

// A context of device 0, current on this thread. False, with what failed on stderr.
bool open_driver();
// Makes the context current on another thread.
void use_driver();
gpurota::interposer::SwapCalls make_calls();

}  // namespace turns_test
