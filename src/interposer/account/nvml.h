// NVML as programs call it: nvidia-smi, pynvml, frameworks that choose how much to allocate by
// NVML's figures. Our functions show the memory and the processes of the lease instead of the
// GPU's; NVML itself answers all other calls.
//
// NVML needs no CUDA, so a program that never calls cuInit may call these functions. Such a program
// becomes a tenant at once or not at all, because a daemon that is away must not keep nvidia-smi
// waiting. Any thread.
#pragma once

#include "abi/nvml_abi.h"
#include "interposer/driver/driver_functions.h"
#include "interposer/os/config.h"

#define GPUROTA_NVML_FUNCTIONS(X)               \
  X(nvmlDeviceGetMemoryInfo)                    \
  X(nvmlDeviceGetMemoryInfo_v2)                 \
  X(nvmlDeviceGetComputeRunningProcesses)       \
  X(nvmlDeviceGetComputeRunningProcesses_v2)    \
  X(nvmlDeviceGetComputeRunningProcesses_v3)    \
  X(nvmlDeviceGetGraphicsRunningProcesses)      \
  X(nvmlDeviceGetGraphicsRunningProcesses_v2)   \
  X(nvmlDeviceGetGraphicsRunningProcesses_v3)   \
  X(nvmlDeviceGetMPSComputeRunningProcesses)    \
  X(nvmlDeviceGetMPSComputeRunningProcesses_v2) \
  X(nvmlDeviceGetMPSComputeRunningProcesses_v3) \
  X(nvmlDeviceGetRunningProcessDetailList)

#define GPUROTA_NVML_API extern "C" GPUROTA_API nvmlReturn_t

GPUROTA_NVML_API nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* out);
GPUROTA_NVML_API nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* out);
#define GPUROTA_NVML_LISTS(kind)                                                                  \
  GPUROTA_NVML_API nvmlDeviceGet##kind##RunningProcesses(nvmlDevice_t device, unsigned* count,    \
                                                         nvmlProcessInfo_v1_t* out);              \
  GPUROTA_NVML_API nvmlDeviceGet##kind##RunningProcesses_v2(nvmlDevice_t device, unsigned* count, \
                                                            nvmlProcessInfo_v2_t* out);           \
  GPUROTA_NVML_API nvmlDeviceGet##kind##RunningProcesses_v3(nvmlDevice_t device, unsigned* count, \
                                                            nvmlProcessInfo_v2_t* out)
GPUROTA_NVML_LISTS(Compute);
GPUROTA_NVML_LISTS(Graphics);
GPUROTA_NVML_LISTS(MPSCompute);
#undef GPUROTA_NVML_LISTS
GPUROTA_NVML_API nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device,
                                                       nvmlProcessDetailList_v1_t* list);

namespace gpurota::interposer {

enum NvmlFn : int {
#define GPUROTA_FN(symbol) kFn_##symbol,
  GPUROTA_NVML_FUNCTIONS(GPUROTA_FN)
#undef GPUROTA_FN
      kFn_nvmlDeviceGetUUID,  // only called
  kNvmlFnCount,
  kNvmlHookCount = kFn_nvmlDeviceGetUUID
};

// NVML's own function; nullptr while the program has not loaded NVML, or if NVML lacks the
// function.
void* nvml_function(NvmlFn id);

// For dlsym: the id of the hook with this name (-1: none), and a hook's address.
int nvml_hook_by_name(const char* name);
void* nvml_hook_address(int id);

// The slot of this GPU in the lease. -1: not of the lease, or no daemon answers.
int slot_of_nvml_device(nvmlDevice_t device);

}  // namespace gpurota::interposer

#define GPUROTA_NVML_REAL(symbol)         \
  (reinterpret_cast<decltype(&::symbol)>( \
      ::gpurota::interposer::nvml_function(::gpurota::interposer::kFn_##symbol)))

// Begins the body of an NVML hook, as GPUROTA_ENTER begins the body of a driver hook.
#define GPUROTA_NVML_ENTER(symbol, ...)                      \
  const auto real = GPUROTA_NVML_REAL(symbol);               \
  if (real == nullptr) return NVML_ERROR_FUNCTION_NOT_FOUND; \
  if (!::gpurota::interposer::active()) return real(__VA_ARGS__)
