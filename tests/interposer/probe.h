// The driver functions that probe.cpp calls, and how a probe finds them.
#pragma once

#include "abi/cuda_abi.h"

#include <cstdio>
#include <cstdlib>

#define EXPECT(condition)                                                           \
  do {                                                                              \
    if (!(condition)) {                                                             \
      std::fprintf(stderr, "probe: line %d: %s is not so\n", __LINE__, #condition); \
      std::exit(1);                                                                 \
    }                                                                               \
  } while (false)

// X(field, exported symbol, name for cuGetProcAddress, result and parameters)
#define PROBE_FUNCTIONS(X)                                                                      \
  X(init, cuInit, "cuInit", CUresult, (unsigned int))                                           \
  X(ctx_create, cuCtxCreate_v2, "cuCtxCreate", CUresult, (CUcontext*, unsigned int, CUdevice))  \
  X(ctx_destroy, cuCtxDestroy_v2, "cuCtxDestroy", CUresult, (CUcontext))                        \
  X(ctx_set_current, cuCtxSetCurrent, "cuCtxSetCurrent", CUresult, (CUcontext))                 \
  X(ctx_synchronize, cuCtxSynchronize, "cuCtxSynchronize", CUresult, (void))                    \
  X(primary_retain, cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", CUresult,             \
    (CUcontext*, CUdevice))                                                                     \
  X(primary_release, cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease", CUresult,       \
    (CUdevice))                                                                                 \
  X(primary_reset, cuDevicePrimaryCtxReset_v2, "cuDevicePrimaryCtxReset", CUresult, (CUdevice)) \
  X(device_total, cuDeviceTotalMem_v2, "cuDeviceTotalMem", CUresult, (size_t*, CUdevice))       \
  X(device_uuid, cuDeviceGetUuid_v2, "cuDeviceGetUuid", CUresult, (CUuuid*, CUdevice))          \
  X(mem_info, cuMemGetInfo_v2, "cuMemGetInfo", CUresult, (size_t*, size_t*))                    \
  X(mem_alloc, cuMemAlloc_v2, "cuMemAlloc", CUresult, (CUdeviceptr*, size_t))                   \
  X(mem_free, cuMemFree_v2, "cuMemFree", CUresult, (CUdeviceptr))                               \
  X(mem_alloc_pitch, cuMemAllocPitch_v2, "cuMemAllocPitch", CUresult,                           \
    (CUdeviceptr*, size_t*, size_t, size_t, unsigned int))                                      \
  X(mem_alloc_managed, cuMemAllocManaged, "cuMemAllocManaged", CUresult,                        \
    (CUdeviceptr*, size_t, unsigned int))                                                       \
  X(mem_address_reserve, cuMemAddressReserve, "cuMemAddressReserve", CUresult,                  \
    (CUdeviceptr*, size_t, size_t, CUdeviceptr, unsigned long long))                            \
  X(mem_create, cuMemCreate, "cuMemCreate", CUresult,                                           \
    (CUmemGenericAllocationHandle*, size_t, const CUmemAllocationProp*, unsigned long long))    \
  X(mem_release, cuMemRelease, "cuMemRelease", CUresult, (CUmemGenericAllocationHandle))        \
  X(mem_map, cuMemMap, "cuMemMap", CUresult,                                                    \
    (CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long))            \
  X(mem_unmap, cuMemUnmap, "cuMemUnmap", CUresult, (CUdeviceptr, size_t))                       \
  X(mem_alloc_async, cuMemAllocAsync, "cuMemAllocAsync", CUresult,                              \
    (CUdeviceptr*, size_t, CUstream))                                                           \
  X(mem_free_async, cuMemFreeAsync, "cuMemFreeAsync", CUresult, (CUdeviceptr, CUstream))

struct Functions {
#define PROBE_FIELD(field, symbol, base, result, parameters) result(*field) parameters;
  PROBE_FUNCTIONS(PROBE_FIELD)
#undef PROBE_FIELD
};
extern Functions cu;

// Defined in lookup_linked.cpp and lookup_dynamic.cpp.
void find_functions();
