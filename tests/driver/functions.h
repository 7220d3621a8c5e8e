// The driver functions that the test programs call, looked up by name in the libcuda.so.1 that the
// loader finds: the simulated driver or NVIDIA's. Shared by the conformance checks (api.h), the
// stress of all families (tests/stress) and the machine of turns (tests/turns). The functions may
// be called on any thread, once load_driver() has returned. Nothing here links to the driver.
#pragma once

#include "abi/cuda_abi.h"

#include <cstddef>

#include <dlfcn.h>

#define DRIVER_FUNCTIONS(X)                                                                       \
  X(cuInit, unsigned)                                                                             \
  X(cuDriverGetVersion, int*)                                                                     \
  X(cuGetProcAddress, const char*, void**, int, cuuint64_t)                                       \
  X(cuGetProcAddress_v2, const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*)   \
  X(cuGetErrorName, CUresult, const char**)                                                       \
  X(cuDeviceGetCount, int*)                                                                       \
  X(cuDeviceGet, CUdevice*, int)                                                                  \
  X(cuDeviceGetName, char*, int, CUdevice)                                                        \
  X(cuDeviceGetUuid_v2, CUuuid*, CUdevice)                                                        \
  X(cuDeviceTotalMem_v2, std::size_t*, CUdevice)                                                  \
  X(cuDeviceGetAttribute, int*, CUdevice_attribute, CUdevice)                                     \
  X(cuDevicePrimaryCtxRetain, CUcontext*, CUdevice)                                               \
  X(cuDevicePrimaryCtxRelease_v2, CUdevice)                                                       \
  X(cuDevicePrimaryCtxReset_v2, CUdevice)                                                         \
  X(cuDevicePrimaryCtxGetState, CUdevice, unsigned*, int*)                                        \
  X(cuCtxCreate_v2, CUcontext*, unsigned, CUdevice)                                               \
  X(cuCtxDestroy_v2, CUcontext)                                                                   \
  X(cuCtxPushCurrent_v2, CUcontext)                                                               \
  X(cuCtxPopCurrent_v2, CUcontext*)                                                               \
  X(cuCtxSetCurrent, CUcontext)                                                                   \
  X(cuCtxGetCurrent, CUcontext*)                                                                  \
  X(cuCtxGetDevice, CUdevice*)                                                                    \
  X(cuCtxSynchronize)                                                                             \
  X(cuMemGetInfo_v2, std::size_t*, std::size_t*)                                                  \
  X(cuMemAlloc_v2, CUdeviceptr*, std::size_t)                                                     \
  X(cuMemAllocPitch_v2, CUdeviceptr*, std::size_t*, std::size_t, std::size_t, unsigned)           \
  X(cuMemAllocManaged, CUdeviceptr*, std::size_t, unsigned)                                       \
  X(cuMemFree_v2, CUdeviceptr)                                                                    \
  X(cuMemGetAddressRange_v2, CUdeviceptr*, std::size_t*, CUdeviceptr)                             \
  X(cuMemHostAlloc, void**, std::size_t, unsigned)                                                \
  X(cuMemFreeHost, void*)                                                                         \
  X(cuMemHostRegister_v2, void*, std::size_t, unsigned)                                           \
  X(cuMemHostUnregister, void*)                                                                   \
  X(cuMemHostGetDevicePointer_v2, CUdeviceptr*, void*, unsigned)                                  \
  X(cuPointerGetAttribute, void*, CUpointer_attribute, CUdeviceptr)                               \
  X(cuMemAllocAsync, CUdeviceptr*, std::size_t, CUstream)                                         \
  X(cuMemFreeAsync, CUdeviceptr, CUstream)                                                        \
  X(cuMemAllocFromPoolAsync, CUdeviceptr*, std::size_t, CUmemoryPool, CUstream)                   \
  X(cuDeviceGetDefaultMemPool, CUmemoryPool*, CUdevice)                                           \
  X(cuMemPoolCreate, CUmemoryPool*, const CUmemPoolProps*)                                        \
  X(cuMemPoolDestroy, CUmemoryPool)                                                               \
  X(cuMemPoolTrimTo, CUmemoryPool, std::size_t)                                                   \
  X(cuMemPoolGetAttribute, CUmemoryPool, CUmemPool_attribute, void*)                              \
  X(cuMemPoolSetAttribute, CUmemoryPool, CUmemPool_attribute, void*)                              \
  X(cuMemGetAllocationGranularity, std::size_t*, const CUmemAllocationProp*,                      \
    CUmemAllocationGranularity_flags)                                                             \
  X(cuMemAddressReserve, CUdeviceptr*, std::size_t, std::size_t, CUdeviceptr, unsigned long long) \
  X(cuMemAddressFree, CUdeviceptr, std::size_t)                                                   \
  X(cuMemCreate, CUmemGenericAllocationHandle*, std::size_t, const CUmemAllocationProp*,          \
    unsigned long long)                                                                           \
  X(cuMemRelease, CUmemGenericAllocationHandle)                                                   \
  X(cuMemMap, CUdeviceptr, std::size_t, std::size_t, CUmemGenericAllocationHandle,                \
    unsigned long long)                                                                           \
  X(cuMemUnmap, CUdeviceptr, std::size_t)                                                         \
  X(cuMemSetAccess, CUdeviceptr, std::size_t, const CUmemAccessDesc*, std::size_t)                \
  X(cuMemGetAccess, unsigned long long*, const CUmemLocation*, CUdeviceptr)                       \
  X(cuMemGetAllocationPropertiesFromHandle, CUmemAllocationProp*, CUmemGenericAllocationHandle)   \
  X(cuMemRetainAllocationHandle, CUmemGenericAllocationHandle*, void*)                            \
  X(cuMemExportToShareableHandle, void*, CUmemGenericAllocationHandle, CUmemAllocationHandleType, \
    unsigned long long)                                                                           \
  X(cuMemImportFromShareableHandle, CUmemGenericAllocationHandle*, void*,                         \
    CUmemAllocationHandleType)                                                                    \
  X(cuMemcpy, CUdeviceptr, CUdeviceptr, std::size_t)                                              \
  X(cuMemcpyHtoD_v2, CUdeviceptr, const void*, std::size_t)                                       \
  X(cuMemcpyDtoH_v2, void*, CUdeviceptr, std::size_t)                                             \
  X(cuMemcpyDtoD_v2, CUdeviceptr, CUdeviceptr, std::size_t)                                       \
  X(cuMemcpyHtoDAsync_v2, CUdeviceptr, const void*, std::size_t, CUstream)                        \
  X(cuMemcpyDtoHAsync_v2, void*, CUdeviceptr, std::size_t, CUstream)                              \
  X(cuMemcpyDtoDAsync_v2, CUdeviceptr, CUdeviceptr, std::size_t, CUstream)                        \
  X(cuMemcpy2D_v2, const CUDA_MEMCPY2D*)                                                          \
  X(cuMemcpy3D_v2, const CUDA_MEMCPY3D*)                                                          \
  X(cuMemcpyHtoA_v2, CUarray, std::size_t, const void*, std::size_t)                              \
  X(cuMemcpyAtoH_v2, void*, CUarray, std::size_t, std::size_t)                                    \
  X(cuMemcpyAtoA_v2, CUarray, std::size_t, CUarray, std::size_t, std::size_t)                     \
  X(cuMemcpyDtoA_v2, CUarray, std::size_t, CUdeviceptr, std::size_t)                              \
  X(cuMemcpyAtoD_v2, CUdeviceptr, CUarray, std::size_t, std::size_t)                              \
  X(cuMemsetD8_v2, CUdeviceptr, unsigned char, std::size_t)                                       \
  X(cuMemsetD16_v2, CUdeviceptr, unsigned short, std::size_t)                                     \
  X(cuMemsetD32_v2, CUdeviceptr, unsigned, std::size_t)                                           \
  X(cuMemsetD32Async, CUdeviceptr, unsigned, std::size_t, CUstream)                               \
  X(cuMemsetD2D8_v2, CUdeviceptr, std::size_t, unsigned char, std::size_t, std::size_t)           \
  X(cuMemsetD2D16_v2, CUdeviceptr, std::size_t, unsigned short, std::size_t, std::size_t)         \
  X(cuMemsetD2D32_v2, CUdeviceptr, std::size_t, unsigned, std::size_t, std::size_t)               \
  X(cuArrayCreate_v2, CUarray*, const CUDA_ARRAY_DESCRIPTOR*)                                     \
  X(cuArray3DCreate_v2, CUarray*, const CUDA_ARRAY3D_DESCRIPTOR*)                                 \
  X(cuArrayDestroy, CUarray)                                                                      \
  X(cuArrayGetDescriptor_v2, CUDA_ARRAY_DESCRIPTOR*, CUarray)                                     \
  X(cuStreamCreate, CUstream*, unsigned)                                                          \
  X(cuStreamDestroy_v2, CUstream)                                                                 \
  X(cuStreamQuery, CUstream)                                                                      \
  X(cuStreamSynchronize, CUstream)                                                                \
  X(cuStreamWaitEvent, CUstream, CUevent, unsigned)                                               \
  X(cuLaunchHostFunc, CUstream, CUhostFn, void*)                                                  \
  X(cuStreamBeginCapture_v2, CUstream, CUstreamCaptureMode)                                       \
  X(cuStreamEndCapture, CUstream, CUgraph*)                                                       \
  X(cuStreamIsCapturing, CUstream, CUstreamCaptureStatus*)                                        \
  X(cuThreadExchangeStreamCaptureMode, CUstreamCaptureMode*)                                      \
  X(cuEventCreate, CUevent*, unsigned)                                                            \
  X(cuEventDestroy_v2, CUevent)                                                                   \
  X(cuEventRecord, CUevent, CUstream)                                                             \
  X(cuEventQuery, CUevent)                                                                        \
  X(cuEventSynchronize, CUevent)                                                                  \
  X(cuEventElapsedTime, float*, CUevent, CUevent)                                                 \
  X(cuIpcGetMemHandle, CUipcMemHandle*, CUdeviceptr)                                              \
  X(cuIpcOpenMemHandle_v2, CUdeviceptr*, CUipcMemHandle, unsigned)                                \
  X(cuIpcCloseMemHandle, CUdeviceptr)                                                             \
  X(cuIpcGetEventHandle, CUipcEventHandle*, CUevent)                                              \
  X(cuIpcOpenEventHandle, CUevent*, CUipcEventHandle)                                             \
  X(cuModuleLoadData, CUmodule*, const void*)                                                     \
  X(cuModuleUnload, CUmodule)                                                                     \
  X(cuModuleGetFunction, CUfunction*, CUmodule, const char*)                                      \
  X(cuFuncGetAttribute, int*, CUfunction_attribute, CUfunction)                                   \
  X(cuLaunchKernel, CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,       \
    unsigned, CUstream, void**, void**)                                                           \
  X(cuGraphCreate, CUgraph*, unsigned)                                                            \
  X(cuGraphDestroy, CUgraph)                                                                      \
  X(cuGraphGetNodes, CUgraph, CUgraphNode*, std::size_t*)                                         \
  X(cuGraphNodeGetType, CUgraphNode, CUgraphNodeType*)                                            \
  X(cuGraphAddKernelNode_v2, CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t,              \
    const CUDA_KERNEL_NODE_PARAMS*)                                                               \
  X(cuGraphAddMemcpyNode, CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t,                 \
    const CUDA_MEMCPY3D*, CUcontext)                                                              \
  X(cuGraphAddMemsetNode, CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t,                 \
    const CUDA_MEMSET_NODE_PARAMS*, CUcontext)                                                    \
  X(cuGraphAddHostNode, CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t,                   \
    const CUDA_HOST_NODE_PARAMS*)                                                                 \
  X(cuGraphAddEmptyNode, CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t)                  \
  X(cuGraphAddChildGraphNode, CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, CUgraph)    \
  X(cuGraphAddMemAllocNode, CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t,               \
    CUDA_MEM_ALLOC_NODE_PARAMS*)                                                                  \
  X(cuGraphAddMemFreeNode, CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, CUdeviceptr)   \
  X(cuGraphClone, CUgraph*, CUgraph)                                                              \
  X(cuGraphInstantiateWithFlags, CUgraphExec*, CUgraph, unsigned long long)                       \
  X(cuGraphExecDestroy, CUgraphExec)                                                              \
  X(cuGraphExecUpdate_v2, CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo*)                     \
  X(cuGraphExecKernelNodeSetParams_v2, CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS*)  \
  X(cuGraphUpload, CUgraphExec, CUstream)                                                         \
  X(cuGraphLaunch, CUgraphExec, CUstream)                                                         \
  X(cuDeviceGetGraphMemAttribute, CUdevice, CUgraphMem_attribute, void*)                          \
  X(cuDeviceGraphMemTrim, CUdevice)

template <class... Arguments>
using DriverFunction = CUresult (*)(Arguments...);

#define DRIVER_DECLARE(name, ...) inline DriverFunction<__VA_ARGS__> name = nullptr;
DRIVER_FUNCTIONS(DRIVER_DECLARE)
#undef DRIVER_DECLARE

// libcuda.so.1; null if there is none (dlerror() has the reason).
void* driver_library();
// A function of libcuda.so.1; nullptr if the library has no function of this name.
template <class F>
F* function(const char* name) {
  return reinterpret_cast<F*>(::dlsym(driver_library(), name));
}
// Looks up all functions. False, with a line on stderr for each missing one.
bool load_driver();
bool is_simulated();
