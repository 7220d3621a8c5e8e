// The driver functions that early_library.cpp finds while the program is being loaded, for
// early_probe.cpp.
#pragma once

#include "abi/cuda_abi.h"

struct Early {
  CUresult (*alloc_by_dlsym)(CUdeviceptr*, size_t);
  CUresult (*alloc_by_handle)(CUdeviceptr*, size_t);
  CUresult (*alloc_by_get_proc)(CUdeviceptr*, size_t);
  CUresult (*free)(CUdeviceptr);
  bool exhausted;  // set by the program: the destructor must get no more memory
};

extern "C" Early early;
