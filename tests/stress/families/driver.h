// The driver functions that the stress program uses, looked up in whichever libcuda.so.1 there is, and
// NVML's figure for some processes.
#pragma once

#include "abi/cuda_abi.h"
#include "abi/nvml_abi.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include <sys/types.h>

#define STRESS_FUNCTIONS(X)                                                                       \
  X(cuInit, unsigned)                                                                             \
  X(cuDevicePrimaryCtxRetain, CUcontext*, CUdevice)                                               \
  X(cuCtxCreate_v2, CUcontext*, unsigned, CUdevice)                                               \
  X(cuCtxDestroy_v2, CUcontext)                                                                   \
  X(cuCtxSetCurrent, CUcontext)                                                                   \
  X(cuMemGetInfo_v2, std::size_t*, std::size_t*)                                                  \
  X(cuMemAlloc_v2, CUdeviceptr*, std::size_t)                                                     \
  X(cuMemAllocPitch_v2, CUdeviceptr*, std::size_t*, std::size_t, std::size_t, unsigned)           \
  X(cuMemAllocManaged, CUdeviceptr*, std::size_t, unsigned)                                       \
  X(cuMemFree_v2, CUdeviceptr)                                                                    \
  X(cuMemAllocAsync, CUdeviceptr*, std::size_t, CUstream)                                         \
  X(cuMemAllocFromPoolAsync, CUdeviceptr*, std::size_t, CUmemoryPool, CUstream)                   \
  X(cuMemFreeAsync, CUdeviceptr, CUstream)                                                        \
  X(cuDeviceGetDefaultMemPool, CUmemoryPool*, CUdevice)                                           \
  X(cuMemPoolCreate, CUmemoryPool*, const CUmemPoolProps*)                                        \
  X(cuMemPoolDestroy, CUmemoryPool)                                                               \
  X(cuMemPoolTrimTo, CUmemoryPool, std::size_t)                                                   \
  X(cuMemPoolGetAttribute, CUmemoryPool, CUmemPool_attribute, void*)                              \
  X(cuMemPoolSetAttribute, CUmemoryPool, CUmemPool_attribute, void*)                              \
  X(cuMemAddressReserve, CUdeviceptr*, std::size_t, std::size_t, CUdeviceptr, unsigned long long) \
  X(cuMemAddressFree, CUdeviceptr, std::size_t)                                                   \
  X(cuMemCreate, CUmemGenericAllocationHandle*, std::size_t, const CUmemAllocationProp*,          \
    unsigned long long)                                                                           \
  X(cuMemRelease, CUmemGenericAllocationHandle)                                                   \
  X(cuMemMap, CUdeviceptr, std::size_t, std::size_t, CUmemGenericAllocationHandle,                \
    unsigned long long)                                                                           \
  X(cuMemUnmap, CUdeviceptr, std::size_t)                                                         \
  X(cuMemSetAccess, CUdeviceptr, std::size_t, const CUmemAccessDesc*, std::size_t)                \
  X(cuMemRetainAllocationHandle, CUmemGenericAllocationHandle*, void*)                            \
  X(cuMemExportToShareableHandle, void*, CUmemGenericAllocationHandle, CUmemAllocationHandleType, \
    unsigned long long)                                                                           \
  X(cuMemImportFromShareableHandle, CUmemGenericAllocationHandle*, void*,                         \
    CUmemAllocationHandleType)                                                                    \
  X(cuMemsetD32_v2, CUdeviceptr, unsigned, std::size_t)                                           \
  X(cuMemsetD32Async, CUdeviceptr, unsigned, std::size_t, CUstream)                               \
  X(cuMemcpyDtoH_v2, void*, CUdeviceptr, std::size_t)                                             \
  X(cuArrayCreate_v2, CUarray*, const CUDA_ARRAY_DESCRIPTOR*)                                     \
  X(cuArray3DCreate_v2, CUarray*, const CUDA_ARRAY3D_DESCRIPTOR*)                                 \
  X(cuArrayDestroy, CUarray)                                                                      \
  X(cuStreamCreate, CUstream*, unsigned)                                                          \
  X(cuStreamDestroy_v2, CUstream)                                                                 \
  X(cuStreamSynchronize, CUstream)                                                                \
  X(cuStreamBeginCapture_v2, CUstream, CUstreamCaptureMode)                                       \
  X(cuStreamEndCapture, CUstream, CUgraph*)                                                       \
  X(cuGraphCreate, CUgraph*, unsigned)                                                            \
  X(cuGraphDestroy, CUgraph)                                                                      \
  X(cuGraphAddMemAllocNode, CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t,               \
    CUDA_MEM_ALLOC_NODE_PARAMS*)                                                                  \
  X(cuGraphAddMemFreeNode, CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, CUdeviceptr)   \
  X(cuGraphInstantiateWithFlags, CUgraphExec*, CUgraph, unsigned long long)                       \
  X(cuGraphExecDestroy, CUgraphExec)                                                              \
  X(cuGraphUpload, CUgraphExec, CUstream)                                                         \
  X(cuGraphLaunch, CUgraphExec, CUstream)                                                         \
  X(cuDeviceGraphMemTrim, CUdevice)                                                               \
  X(cuDeviceGetGraphMemAttribute, CUdevice, CUgraphMem_attribute, void*)

namespace gpurota::stress {

template <class... Arguments>
using DriverFunction = CUresult (*)(Arguments...);
#define STRESS_DECLARE(name, ...) inline DriverFunction<__VA_ARGS__> name = nullptr;
STRESS_FUNCTIONS(STRESS_DECLARE)
#undef STRESS_DECLARE

// False, with a line on stderr, if there is no driver or it lacks one of them.
bool load_driver();

bool is_simulated();

// The sum of what NVML says that these processes hold, on the first GPU that lists one of them.
class Nvml {
 public:
  explicit Nvml(std::vector<pid_t> pids);
  std::uint64_t sum() const;

 private:
  std::vector<pid_t> pids_;
  std::vector<nvmlDevice_t> devices_;
  nvmlReturn_t (*processes_)(nvmlDevice_t, unsigned*, nvmlProcessInfo_v2_t*) = nullptr;
};

}  // namespace gpurota::stress
