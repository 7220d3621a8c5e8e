// cuInit, versions, cuGetProcAddress and error names.
#include "sim/cuda/api.h"
#include "sim/cuda/proc_table.h"

#include <cstring>

using gpurota::sim::Call;
using gpurota::sim::Driver;
using gpurota::sim::Machine;

namespace {

constexpr int kNewestVersion = CUDA_VERSION;

int driver_version() {
  static const int version = [] {
    const auto machine = Machine::open("");
    return machine ? machine->state().cuda_version : kNewestVersion;
  }();
  return version;
}

// The newest variant that `version` allows. With per-thread streams, the per-thread variant comes
// first; the plain one is used where there is no per-thread variant.
CUresult look_up(const char* symbol, void** out, int version, cuuint64_t flags,
                 CUdriverProcAddressQueryResult* status) {
  if (symbol == nullptr || out == nullptr || version > driver_version()) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  constexpr cuuint64_t kBoth =
      CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  if ((flags & ~kBoth) != 0 || flags == kBoth) return CUDA_ERROR_INVALID_VALUE;
  const bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  const gpurota_sim_function* best = nullptr;
  bool known = false;
  for (unsigned i = 0; i < gpurota_sim_function_count; ++i) {
    const gpurota_sim_function& function = gpurota_sim_functions[i];
    if (std::strcmp(function.base, symbol) != 0) continue;
    if (function.version <= driver_version()) known = true;
    if (function.version > version || (function.per_thread != 0 && !per_thread)) continue;
    const bool better =
        best == nullptr || function.per_thread > best->per_thread ||
        (function.per_thread == best->per_thread && function.version >= best->version);
    if (better) best = &function;
  }
  *out = best == nullptr ? nullptr : best->address;
  *status = best != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS
            : known         ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                            : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return CUDA_SUCCESS;
}

}  // namespace

GPUROTA_SIM_API cuInit(unsigned flags) { return Driver::get().init(flags); }

GPUROTA_SIM_API cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = driver_version();
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuGetProcAddress(const char* symbol, void** out, int version, cuuint64_t flags) {
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
  const CUresult result = look_up(symbol, out, version, flags, &status);
  if (result != CUDA_SUCCESS) return result;
  return status == CU_GET_PROC_ADDRESS_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

GPUROTA_SIM_API cuGetProcAddress_v2(const char* symbol, void** out, int version, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult* status) {
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
  const CUresult result = look_up(symbol, out, version, flags, &found);
  if (result == CUDA_SUCCESS && status != nullptr) *status = found;
  return result;
}

// The simulator has no export tables: the ones that NVIDIA's own libraries ask for are
// undocumented.
GPUROTA_SIM_API cuGetExportTable(const void** table, const CUuuid* id) {
  if (table == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *table = nullptr;
  return CUDA_ERROR_NOT_FOUND;
}

GPUROTA_SIM_API cuProfilerStart() {
  const Call call;
  return call.error();
}

GPUROTA_SIM_API cuProfilerStop() {
  const Call call;
  return call.error();
}
