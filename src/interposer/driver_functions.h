// The driver's functions that libgpurota stands in for, and those it calls itself.
//
// GPUROTA_HOOKED_FUNCTIONS(X): X(symbol, base, version, flags). `base`, `version` and `flags` are what
// cuGetProcAddress is asked for this very symbol (abi/driver_functions.tsv; a test compares them).
// Each has a function of the same name and type in this library, which is exported.
#pragma once

#include "abi/cuda_abi.h"

#define GPUROTA_HOOKED_FUNCTIONS(X)                                             \
  X(cuGetProcAddress, "cuGetProcAddress", 11030, 0)                             \
  X(cuGetProcAddress_v2, "cuGetProcAddress", 12000, 0)                          \
  X(cuMemAlloc, "cuMemAlloc", 2000, 0)                                          \
  X(cuMemAlloc_v2, "cuMemAlloc", 3020, 0)                                       \
  X(cuMemAllocPitch, "cuMemAllocPitch", 2000, 0)                                \
  X(cuMemAllocPitch_v2, "cuMemAllocPitch", 3020, 0)                             \
  X(cuMemAllocManaged, "cuMemAllocManaged", 6000, 0)                            \
  X(cuMemFree, "cuMemFree", 2000, 0)                                            \
  X(cuMemFree_v2, "cuMemFree", 3020, 0)                                         \
  X(cuMemCreate, "cuMemCreate", 10020, 0)                                       \
  X(cuMemRelease, "cuMemRelease", 10020, 0)                                     \
  X(cuMemMap, "cuMemMap", 10020, 0)                                             \
  X(cuMemUnmap, "cuMemUnmap", 10020, 0)                                         \
  X(cuMemRetainAllocationHandle, "cuMemRetainAllocationHandle", 11000, 0)       \
  X(cuMemImportFromShareableHandle, "cuMemImportFromShareableHandle", 10020, 0) \
  X(cuCtxCreate, "cuCtxCreate", 2000, 0)                                        \
  X(cuCtxCreate_v2, "cuCtxCreate", 3020, 0)                                     \
  X(cuCtxCreate_v3, "cuCtxCreate", 11040, 0)                                    \
  X(cuCtxCreate_v4, "cuCtxCreate", 12050, 0)                                    \
  X(cuCtxDestroy, "cuCtxDestroy", 2000, 0)                                      \
  X(cuCtxDestroy_v2, "cuCtxDestroy", 4000, 0)                                   \
  X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000, 0)              \
  X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease", 7000, 0)            \
  X(cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease", 11000, 0)        \
  X(cuDevicePrimaryCtxReset, "cuDevicePrimaryCtxReset", 7000, 0)                \
  X(cuDevicePrimaryCtxReset_v2, "cuDevicePrimaryCtxReset", 11000, 0)            \
  X(cuMemAllocAsync, "cuMemAllocAsync", 11020, 0)                               \
  X(cuMemAllocAsync_ptsz, "cuMemAllocAsync", 11020, 2)                          \
  X(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", 11020, 0)               \
  X(cuMemAllocFromPoolAsync_ptsz, "cuMemAllocFromPoolAsync", 11020, 2)          \
  X(cuMemFreeAsync, "cuMemFreeAsync", 11020, 0)                                 \
  X(cuMemFreeAsync_ptsz, "cuMemFreeAsync", 11020, 2)                            \
  X(cuMemPoolCreate, "cuMemPoolCreate", 11020, 0)                               \
  X(cuMemPoolDestroy, "cuMemPoolDestroy", 11020, 0)                             \
  X(cuMemPoolTrimTo, "cuMemPoolTrimTo", 11020, 0)                               \
  X(cuDeviceSetMemPool, "cuDeviceSetMemPool", 11020, 0)                         \
  X(cuMemSetMemPool, "cuMemSetMemPool", 13000, 0)                               \
  X(cuMemGetInfo, "cuMemGetInfo", 2000, 0)                                      \
  X(cuMemGetInfo_v2, "cuMemGetInfo", 3020, 0)                                   \
  X(cuDeviceTotalMem, "cuDeviceTotalMem", 2000, 0)                              \
  X(cuDeviceTotalMem_v2, "cuDeviceTotalMem", 3020, 0)

#define GPUROTA_CALLED_FUNCTIONS(X) \
  X(cuCtxGetCurrent)                \
  X(cuCtxGetDevice)                 \
  X(cuDeviceGetCount)               \
  X(cuDeviceGetUuid)                \
  X(cuDeviceGetUuid_v2)             \
  X(cuDevicePrimaryCtxGetState)     \
  X(cuMemPoolGetAttribute)          \
  X(cuDeviceGetMemPool)             \
  X(cuDeviceGetDefaultMemPool)      \
  X(cuStreamIsCapturing)            \
  X(cuStreamIsCapturing_ptsz)       \
  X(cuStreamGetCtx)                 \
  X(cuStreamGetCtx_ptsz)

#define GPUROTA_API __attribute__((visibility("default")))

extern "C" {

GPUROTA_API CUresult cuGetProcAddress(const char* symbol, void** pfn, int version,
                                      cuuint64_t flags);
GPUROTA_API CUresult cuGetProcAddress_v2(const char* symbol, void** pfn, int version,
                                         cuuint64_t flags, CUdriverProcAddressQueryResult* status);

GPUROTA_API CUresult cuMemAlloc(CUdeviceptr_v1* out, unsigned int size);
GPUROTA_API CUresult cuMemAlloc_v2(CUdeviceptr* out, size_t size);
GPUROTA_API CUresult cuMemAllocPitch(CUdeviceptr_v1* out, unsigned int* pitch, unsigned int width,
                                     unsigned int height, unsigned int element);
GPUROTA_API CUresult cuMemAllocPitch_v2(CUdeviceptr* out, size_t* pitch, size_t width,
                                        size_t height, unsigned int element);
GPUROTA_API CUresult cuMemAllocManaged(CUdeviceptr* out, size_t size, unsigned int flags);
GPUROTA_API CUresult cuMemFree(CUdeviceptr_v1 ptr);
GPUROTA_API CUresult cuMemFree_v2(CUdeviceptr ptr);

GPUROTA_API CUresult cuMemCreate(CUmemGenericAllocationHandle* out, size_t size,
                                 const CUmemAllocationProp* prop, unsigned long long flags);
GPUROTA_API CUresult cuMemRelease(CUmemGenericAllocationHandle handle);
GPUROTA_API CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
                              CUmemGenericAllocationHandle handle, unsigned long long flags);
GPUROTA_API CUresult cuMemUnmap(CUdeviceptr ptr, size_t size);
GPUROTA_API CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* out, void* address);
GPUROTA_API CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* out,
                                                    void* os_handle,
                                                    CUmemAllocationHandleType type);

GPUROTA_API CUresult cuCtxCreate(CUcontext* out, unsigned int flags, CUdevice device);
GPUROTA_API CUresult cuCtxCreate_v2(CUcontext* out, unsigned int flags, CUdevice device);
GPUROTA_API CUresult cuCtxCreate_v3(CUcontext* out, CUexecAffinityParam* params, int count,
                                    unsigned int flags, CUdevice device);
GPUROTA_API CUresult cuCtxCreate_v4(CUcontext* out, CUctxCreateParams* params, unsigned int flags,
                                    CUdevice device);
GPUROTA_API CUresult cuCtxDestroy(CUcontext context);
GPUROTA_API CUresult cuCtxDestroy_v2(CUcontext context);
GPUROTA_API CUresult cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice device);
GPUROTA_API CUresult cuDevicePrimaryCtxRelease(CUdevice device);
GPUROTA_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
GPUROTA_API CUresult cuDevicePrimaryCtxReset(CUdevice device);
GPUROTA_API CUresult cuDevicePrimaryCtxReset_v2(CUdevice device);

GPUROTA_API CUresult cuMemAllocAsync(CUdeviceptr* out, size_t size, CUstream stream);
GPUROTA_API CUresult cuMemAllocAsync_ptsz(CUdeviceptr* out, size_t size, CUstream stream);
GPUROTA_API CUresult cuMemAllocFromPoolAsync(CUdeviceptr* out, size_t size, CUmemoryPool pool,
                                             CUstream stream);
GPUROTA_API CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* out, size_t size, CUmemoryPool pool,
                                                  CUstream stream);
GPUROTA_API CUresult cuMemFreeAsync(CUdeviceptr ptr, CUstream stream);
GPUROTA_API CUresult cuMemFreeAsync_ptsz(CUdeviceptr ptr, CUstream stream);
GPUROTA_API CUresult cuMemPoolCreate(CUmemoryPool* out, const CUmemPoolProps* props);
GPUROTA_API CUresult cuMemPoolDestroy(CUmemoryPool pool);
GPUROTA_API CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep);
GPUROTA_API CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool);
GPUROTA_API CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type,
                                     CUmemoryPool pool);

GPUROTA_API CUresult cuMemGetInfo(unsigned int* free, unsigned int* total);
GPUROTA_API CUresult cuMemGetInfo_v2(size_t* free, size_t* total);
GPUROTA_API CUresult cuDeviceTotalMem(unsigned int* bytes, CUdevice device);
GPUROTA_API CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device);

// Only called; these names have no definition here.
CUresult cuCtxGetCurrent(CUcontext* out);
CUresult cuCtxGetDevice(CUdevice* out);
CUresult cuDeviceGetCount(int* out);
CUresult cuDeviceGetUuid(CUuuid* out, CUdevice device);
CUresult cuDeviceGetUuid_v2(CUuuid* out, CUdevice device);
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* is_active);
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value);
CUresult cuDeviceGetMemPool(CUmemoryPool* out, CUdevice device);
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* out, CUdevice device);
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status);
CUresult cuStreamIsCapturing_ptsz(CUstream stream, CUstreamCaptureStatus* status);
CUresult cuStreamGetCtx(CUstream stream, CUcontext* out);
CUresult cuStreamGetCtx_ptsz(CUstream stream, CUcontext* out);

}  // extern "C"
