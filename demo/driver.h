// The few functions of the CUDA driver that the demo's programs call, looked up at run time as by
// any program without the CUDA toolkit. One thread. Independent of gpurota.
#pragma once

#include "abi/cuda_abi.h"

#include <cstddef>

namespace demo {

struct Driver {
  CUresult (*init)(unsigned flags);
  CUresult (*device_count)(int* count);
  CUresult (*device_get)(CUdevice* device, int index);
  CUresult (*device_name)(char* name, int size, CUdevice device);
  CUresult (*device_total)(std::size_t* bytes, CUdevice device);
  CUresult (*context_retain)(CUcontext* context, CUdevice device);
  CUresult (*context_set)(CUcontext context);
  CUresult (*context_synchronize)();
  CUresult (*mem_info)(std::size_t* free, std::size_t* total);
  CUresult (*mem_alloc)(CUdeviceptr* address, std::size_t bytes);
  CUresult (*mem_free)(CUdeviceptr address);
  CUresult (*set_words)(CUdeviceptr address, unsigned value, std::size_t count);
  CUresult (*copy_to_host)(void* to, CUdeviceptr from, std::size_t bytes);
  CUresult (*module_load)(CUmodule* module, const void* image);
  CUresult (*module_function)(CUfunction* function, CUmodule module, const char* name);
  CUresult (*launch)(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                     unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                     CUstream stream, void** arguments, void** extra);
  CUresult (*error_name)(CUresult error, const char** name);
};

// Loads libcuda.so.1 and looks up the functions; on failure prints the reason and exits with 3.
const Driver& driver();

// Prints "WHAT: CUDA_ERROR_…" and exits with 3 unless `result` is success.
void check(CUresult result, const char* what);

const char* error_name(CUresult result);

}  // namespace demo
