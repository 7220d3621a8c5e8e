// The types of the driver's functions that libgpurota stands in for, and of those it calls itself.
//
// Which they are says the column `use` of abi/driver_functions.tsv, of which the build makes
// GPUROTA_HOOKED_FUNCTIONS and GPUROTA_CALLED_FUNCTIONS (driver_table.h). Each hook has a function of
// the same name and type in this library, which is exported.
#pragma once

#include "abi/cuda_abi.h"
#include "interposer/driver_table.h"

#define GPUROTA_API __attribute__((visibility("default")))

extern "C" {

GPUROTA_API CUresult cuInit(unsigned int flags);
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
