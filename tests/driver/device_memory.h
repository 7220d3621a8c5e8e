// Properties of memory on device 0 for virtual memory management, for test programs. Header only;
// needs only the ABI of CUDA.
#pragma once

#include "abi/cuda_abi.h"

inline constexpr CUmemAccessDesc kReadWrite = {{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                               CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

inline CUmemAllocationProp device_memory(
    CUmemAllocationHandleType handles = CU_MEM_HANDLE_TYPE_NONE) {
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  prop.requestedHandleTypes = handles;
  return prop;
}
