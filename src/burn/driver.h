// The functions of the CUDA driver and of NVML that burn calls. Looked up at run time, so neither
// building nor starting needs them. The names are the driver's own, so that the code reads as CUDA
// code.
#pragma once

#include "abi/cuda_abi.h"
#include "abi/nvml_abi.h"
#include "base/result.h"

#include <optional>
#include <string>
#include <vector>

namespace gpurota::burn {

struct Driver {
  CUresult (*cuInit)(unsigned) = nullptr;
  CUresult (*cuGetErrorName)(CUresult, const char**) = nullptr;
  CUresult (*cuDeviceGetCount)(int*) = nullptr;
  CUresult (*cuDeviceGet)(CUdevice*, int) = nullptr;
  CUresult (*cuDeviceGetName)(char*, int, CUdevice) = nullptr;
  CUresult (*cuDeviceGetUuid)(CUuuid*,
                              CUdevice) = nullptr;  // the MIG instance's UUID, if it is one
  CUresult (*cuDeviceGetAttribute)(int*, CUdevice_attribute, CUdevice) = nullptr;
  CUresult (*cuDeviceTotalMem)(std::size_t*, CUdevice) = nullptr;
  CUresult (*cuCtxCreate)(CUcontext*, unsigned, CUdevice) = nullptr;
  CUresult (*cuCtxDestroy)(CUcontext) = nullptr;
  CUresult (*cuMemGetInfo)(std::size_t*, std::size_t*) = nullptr;
  CUresult (*cuMemAlloc)(CUdeviceptr*, std::size_t) = nullptr;
  CUresult (*cuMemFree)(CUdeviceptr) = nullptr;
  CUresult (*cuMemcpyHtoD)(CUdeviceptr, const void*, std::size_t) = nullptr;
  CUresult (*cuMemcpyDtoH)(void*, CUdeviceptr, std::size_t) = nullptr;
  CUresult (*cuModuleLoadData)(CUmodule*, const void*) = nullptr;
  CUresult (*cuModuleGetFunction)(CUfunction*, CUmodule, const char*) = nullptr;
  CUresult (*cuLaunchKernel)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                             unsigned, CUstream, void**, void**) = nullptr;
  CUresult (*cuStreamCreate)(CUstream*, unsigned) = nullptr;
  CUresult (*cuStreamSynchronize)(CUstream) = nullptr;
  CUresult (*cuEventCreate)(CUevent*, unsigned) = nullptr;
  CUresult (*cuEventRecord)(CUevent, CUstream) = nullptr;
  CUresult (*cuEventSynchronize)(CUevent) = nullptr;
  CUresult (*cuEventElapsedTime)(float*, CUevent, CUevent) = nullptr;

  // The error "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY"; success for kOk.
  Result<void> check(CUresult result, const char* call) const;
};

// A GPU that this process can see.
struct Gpu {
  int index = 0;  // among the visible GPUs, in PCI order
  CUdevice device = 0;
  std::string uuid;  // "GPU-…"; also of a MIG instance
  std::string name;
};

// kUnavailable, with the remedy, if there is no driver or it has no GPU.
Result<Driver> load_driver();
Result<std::vector<Gpu>> list_gpus(const Driver& driver);
// The GPUs of `all` that the ids name, in the order of `all`; all of them without ids. kNotFound:
// an id names no GPU; kInvalid: an id names several.
Result<std::vector<Gpu>> choose_gpus(const std::vector<Gpu>& all,
                                     const std::vector<std::string>& ids);

// The sensors of a GPU, from NVML. Without NVML all readings are unknown, which is not an error.
class Sensors {
 public:
  Sensors();
  ~Sensors();
  Sensors(const Sensors&) = delete;
  Sensors& operator=(const Sensors&) = delete;

  std::optional<int> temperature_c(const Gpu& gpu) const;
  std::optional<double> power_watts(const Gpu& gpu) const;

 private:
  nvmlDevice_t board_of(const Gpu& gpu) const;  // the whole GPU of a MIG instance; null: unknown

  nvmlReturn_t (*shutdown_)() = nullptr;  // null: there is no NVML
  nvmlReturn_t (*by_uuid_)(const char*, nvmlDevice_t*) = nullptr;
  nvmlReturn_t (*board_)(nvmlDevice_t, nvmlDevice_t*) = nullptr;
  nvmlReturn_t (*temperature_)(nvmlDevice_t, int, unsigned*) = nullptr;
  nvmlReturn_t (*power_)(nvmlDevice_t, unsigned*) = nullptr;
};

}  // namespace gpurota::burn
