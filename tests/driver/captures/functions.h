// Driver functions that only the table of captures calls. Unlike those of tests/driver/functions.h,
// a function may be missing: the table leaves out what a driver does not have.
#pragma once

#include "tests/driver/functions.h"

// clang-format off
#define CAPTURE_FUNCTIONS(X)                                                                      \
  X(cuArrayGetMemoryRequirements, CUDA_ARRAY_MEMORY_REQUIREMENTS*, CUarray, CUdevice)             \
  X(cuCtxFromGreenCtx, CUcontext*, CUgreenCtx)                                                    \
  X(cuCtxGetApiVersion, CUcontext, unsigned*)                                                     \
  X(cuCtxGetFlags, unsigned*)                                                                     \
  X(cuCtxGetId, CUcontext, unsigned long long*)                                                   \
  X(cuCtxGetLimit, std::size_t*, CUlimit)                                                         \
  X(cuCtxGetStreamPriorityRange, int*, int*)                                                      \
  X(cuCtxRecordEvent, CUcontext, CUevent)                                                         \
  X(cuCtxResetPersistingL2Cache)                                                                  \
  X(cuCtxSetLimit, CUlimit, std::size_t)                                                          \
  X(cuCtxWaitEvent, CUcontext, CUevent)                                                           \
  X(cuDevResourceGenerateDesc, CUdevResourceDesc*, CUdevResource*, unsigned)                      \
  X(cuDeviceCanAccessPeer, int*, CUdevice, CUdevice)                                              \
  X(cuDeviceGetDevResource, CUdevice, CUdevResource*, int)                                        \
  X(cuDeviceGetMemPool, CUmemoryPool*, CUdevice)                                                  \
  X(cuDeviceGetUuid, CUuuid*, CUdevice)                                                           \
  X(cuDeviceSetGraphMemAttribute, CUdevice, CUgraphMem_attribute, void*)                          \
  X(cuDeviceSetMemPool, CUdevice, CUmemoryPool)                                                   \
  X(cuEventRecordWithFlags, CUevent, CUstream, unsigned)                                          \
  X(cuEventRecord_ptsz, CUevent, CUstream)                                                        \
  X(cuFuncGetModule, CUmodule*, CUfunction)                                                       \
  X(cuFuncSetAttribute, CUfunction, CUfunction_attribute, int)                                    \
  X(cuGraphChildGraphNodeGetGraph, CUgraphNode, CUgraph*)                                         \
  X(cuGraphMemAllocNodeGetParams, CUgraphNode, CUDA_MEM_ALLOC_NODE_PARAMS*)                       \
  X(cuGreenCtxCreate, CUgreenCtx*, CUdevResourceDesc, CUdevice, unsigned)                         \
  X(cuKernelGetAttribute, int*, CUfunction_attribute, CUkernel, CUdevice)                         \
  X(cuKernelGetFunction, CUfunction*, CUkernel)                                                   \
  X(cuLibraryGetKernel, CUkernel*, CUlibrary, const char*)                                        \
  X(cuLibraryGetModule, CUmodule*, CUlibrary)                                                     \
  X(cuLibraryLoadData, CUlibrary*, const void*, CUjit_option*, void**, unsigned,                  \
    CUlibraryOption*, void**, unsigned)                                                           \
  X(cuLibraryUnload, CUlibrary)                                                                   \
  X(cuMemAllocHost_v2, void**, std::size_t)                                                       \
  X(cuMemFreeAsync_ptsz, CUdeviceptr, CUstream)                                                   \
  X(cuMemGetDefaultMemPool, CUmemoryPool*, CUmemLocation*, CUmemAllocationType)                   \
  X(cuMemGetHandleForAddressRange, void*, CUdeviceptr, std::size_t, int, unsigned long long)      \
  X(cuMemHostGetFlags, unsigned*, void*)                                                          \
  X(cuMemPoolExportToShareableHandle, void*, CUmemoryPool, CUmemAllocationHandleType,             \
    unsigned long long)                                                                           \
  X(cuMemPoolGetAccess, CUmemAccess_flags*, CUmemoryPool, CUmemLocation*)                         \
  X(cuMemPoolImportFromShareableHandle, CUmemoryPool*, void*, CUmemAllocationHandleType,          \
    unsigned long long)                                                                           \
  X(cuMemPoolSetAccess, CUmemoryPool, const CUmemAccessDesc*, std::size_t)                        \
  X(cuMemsetD8Async, CUdeviceptr, unsigned char, std::size_t, CUstream)                           \
  X(cuMipmappedArrayCreate, CUmipmappedArray*, const CUDA_ARRAY3D_DESCRIPTOR*, unsigned)          \
  X(cuMipmappedArrayDestroy, CUmipmappedArray)                                                    \
  X(cuMipmappedArrayGetMemoryRequirements, CUDA_ARRAY_MEMORY_REQUIREMENTS*, CUmipmappedArray,     \
    CUdevice)                                                                                     \
  X(cuModuleGetGlobal_v2, CUdeviceptr*, std::size_t*, CUmodule, const char*)                      \
  X(cuModuleLoadDataEx, CUmodule*, const void*, unsigned, CUjit_option*, void**)                  \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor, int*, CUfunction, int, std::size_t)              \
  X(cuPointerGetAttributes, unsigned, CUpointer_attribute*, void**, CUdeviceptr)                  \
  X(cuPointerSetAttribute, const void*, CUpointer_attribute, CUdeviceptr)                         \
  X(cuStreamAddCallback, CUstream, CUstreamCallback, void*, unsigned)                             \
  X(cuStreamCreateWithPriority, CUstream*, unsigned, int)                                         \
  X(cuStreamGetCaptureInfo_v2, CUstream, CUstreamCaptureStatus*, cuuint64_t*, CUgraph*,           \
    const CUgraphNode**, std::size_t*)                                                            \
  X(cuStreamGetCtx, CUstream, CUcontext*)                                                         \
  X(cuStreamGetCtx_ptsz, CUstream, CUcontext*)                                                    \
  X(cuStreamGetFlags, CUstream, unsigned*)                                                        \
  X(cuStreamGetId, CUstream, unsigned long long*)                                                 \
  X(cuStreamGetPriority, CUstream, int*)                                                          \
  X(cuStreamIsCapturing_ptsz, CUstream, CUstreamCaptureStatus*)                                   \
  X(cuStreamQuery_ptsz, CUstream)                                                                 \
  X(cuStreamSynchronize_ptsz, CUstream)                                                           \
  X(cuStreamWriteValue32_v2, CUstream, CUdeviceptr, cuuint32_t, unsigned)
// clang-format on

#define CAPTURE_DECLARE(name, ...) inline DriverFunction<__VA_ARGS__> name = nullptr;
CAPTURE_FUNCTIONS(CAPTURE_DECLARE)
#undef CAPTURE_DECLARE

inline void load_capture_functions() {
#define CAPTURE_LOAD(name, ...) name = function<CUresult(__VA_ARGS__)>(#name);
  CAPTURE_FUNCTIONS(CAPTURE_LOAD)
#undef CAPTURE_LOAD
}
