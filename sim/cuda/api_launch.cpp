// Kernels: querying, configuring and launching them.
#include "sim/cuda/launch.h"
#include "sim/cuda/module.h"
#include "sim/cuda/stream.h"

#include <algorithm>
#include <cstring>

namespace gpurota::sim {
namespace {

constexpr unsigned kMaxThreads = 1024;
constexpr unsigned kStaticShared = 49152;

std::size_t aligned(std::size_t offset, std::size_t bytes) {
  return (offset + bytes - 1) / bytes * bytes;
}

// CU_LAUNCH_PARAM_BUFFER_POINTER and _SIZE in a list that ends with 0.
bool read_extra(void** extra, const std::byte** buffer, std::size_t* size) {
  for (; *extra != nullptr; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      *buffer = static_cast<const std::byte*>(extra[1]);
    } else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      *size = *static_cast<const std::size_t*>(extra[1]);
    } else {
      return false;
    }
  }
  return *buffer != nullptr;
}

}  // namespace

CUresult make_kernel(const LaunchShape& shape, Function* function, void** params, void** extra,
                     KernelOp* out) {
  if (function->spec == nullptr) return unsupported(("kernel " + function->name).c_str());
  const std::uint64_t threads = std::uint64_t{shape.block[0]} * shape.block[1] * shape.block[2];
  const std::uint64_t blocks = std::uint64_t{shape.grid[0]} * shape.grid[1] * shape.grid[2];
  if (threads == 0 || blocks == 0 || threads > kMaxThreads) return CUDA_ERROR_INVALID_VALUE;
  const auto shared_limit =
      std::max(kStaticShared, static_cast<unsigned>(function->max_dynamic_shared));
  if (shape.shared_bytes > shared_limit) return CUDA_ERROR_INVALID_VALUE;
  out->function = function;
  std::copy(shape.grid, shape.grid + 3, out->grid);
  std::copy(shape.block, shape.block + 3, out->block);
  out->shared_bytes = shape.shared_bytes;
  std::size_t total = 0;
  for (const std::size_t bytes : function->spec->argument_bytes) {
    total = aligned(total, bytes) + bytes;
  }
  out->arguments.assign(total, std::byte{0});
  if (params == nullptr && extra != nullptr) {
    const std::byte* buffer = nullptr;
    std::size_t size = 0;
    if (!read_extra(extra, &buffer, &size) || size < total) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(out->arguments.data(), buffer, total);
    return CUDA_SUCCESS;
  }
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::size_t offset = 0;
  for (std::size_t i = 0; i < function->spec->argument_bytes.size(); ++i) {
    const std::size_t bytes = function->spec->argument_bytes[i];
    offset = aligned(offset, bytes);
    if (params[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(out->arguments.data() + offset, params[i], bytes);
    offset += bytes;
  }
  return CUDA_SUCCESS;
}

}  // namespace gpurota::sim

using gpurota::sim::Call;
using gpurota::sim::Function;
using gpurota::sim::KernelOp;
using gpurota::sim::LaunchShape;
using gpurota::sim::StreamCall;

namespace {

CUresult launch(CUfunction handle, const LaunchShape& shape, CUstream stream, void** params,
                void** extra) {
  StreamCall call(stream);
  if (call.failed()) return call.error();
  Function* function = call.driver().functions.find(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  KernelOp op;
  const CUresult result = gpurota::sim::make_kernel(shape, function, params, extra, &op);
  return result == CUDA_SUCCESS ? call.submit(std::move(op), StreamCall::Wait::kNo) : result;
}

class FunctionCall : public Call {
 public:
  explicit FunctionCall(const void* handle) {
    if (failed()) return;
    function_ = driver_.functions.find(reinterpret_cast<std::uintptr_t>(handle));
    if (function_ == nullptr) error_ = CUDA_ERROR_INVALID_HANDLE;
  }
  Function& function() const { return *function_; }

 private:
  Function* function_ = nullptr;
};

CUresult get_attribute(const void* handle, int attribute, int* value) {
  const FunctionCall call(handle);
  if (call.failed()) return call.error();
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = 1024;
      break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = 16;
      break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
      *value = 60;
      break;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = 60;
      break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = std::max(call.function().max_dynamic_shared, 49152);
      break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      *value = call.function().carveout;
      break;
    default:
      if (attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
      *value = 0;
  }
  return CUDA_SUCCESS;
}

CUresult set_attribute(const void* handle, int attribute, int value) {
  const FunctionCall call(handle);
  if (call.failed()) return call.error();
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    const int most = call.machine().config(call.driver().visible[0]).shared_per_block_optin;
    if (value < 0 || value > most) return CUDA_ERROR_INVALID_VALUE;
    call.function().max_dynamic_shared = value;
    return CUDA_SUCCESS;
  }
  if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) {
    call.function().carveout = value;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult get_parameter(const void* handle, std::size_t index, std::size_t* offset,
                       std::size_t* size) {
  const FunctionCall call(handle);
  if (call.failed()) return call.error();
  if (offset == nullptr || call.function().spec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto& sizes = call.function().spec->argument_bytes;
  if (index >= sizes.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = 0;
  for (std::size_t i = 0; i <= index; ++i) {
    *offset = (*offset + sizes[i] - 1) / sizes[i] * sizes[i];
    if (i < index) *offset += sizes[i];
  }
  if (size != nullptr) *size = sizes[index];
  return CUDA_SUCCESS;
}

CUresult active_blocks(const void* handle, int threads, int* blocks) {
  const FunctionCall call(handle);
  if (call.failed()) return call.error();
  if (blocks == nullptr || threads <= 0 || threads > 1024) return CUDA_ERROR_INVALID_VALUE;
  const auto& gpu = call.machine().config(call.driver().visible[0]);
  *blocks = std::min(gpu.threads_per_multiprocessor / threads, gpu.blocks_per_multiprocessor);
  return CUDA_SUCCESS;
}

}  // namespace

GPUROTA_SIM_STREAM_API(cuLaunchKernel, _ptsz,
                       (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                        unsigned by, unsigned bz, unsigned shared, CUstream stream, void** params,
                        void** extra),
                       (function, gx, gy, gz, bx, by, bz, shared, stream, params, extra)) {
  return launch(function, {{gx, gy, gz}, {bx, by, bz}, shared}, stream, params, extra);
}

GPUROTA_SIM_STREAM_API(cuLaunchKernelEx, _ptsz,
                       (const CUlaunchConfig* config, CUfunction function, void** params,
                        void** extra),
                       (config, function, params, extra)) {
  if (config == nullptr || (config->numAttrs > 0 && config->attrs == nullptr)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const LaunchShape shape = {{config->gridDimX, config->gridDimY, config->gridDimZ},
                             {config->blockDimX, config->blockDimY, config->blockDimZ},
                             config->sharedMemBytes};
  return launch(function, shape, config->hStream, params, extra);
}

GPUROTA_SIM_STREAM_API(cuLaunchCooperativeKernel, _ptsz,
                       (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                        unsigned by, unsigned bz, unsigned shared, CUstream stream, void** params),
                       (function, gx, gy, gz, bx, by, bz, shared, stream, params)) {
  int blocks = 0;
  const std::uint64_t threads = std::uint64_t{bx} * by * bz;
  if (threads == 0 || threads > 1024) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = active_blocks(function, static_cast<int>(threads), &blocks);
  if (result != CUDA_SUCCESS) return result;
  CUdevice ordinal = 0;
  int multiprocessors = 0;
  {
    const gpurota::sim::ContextCall call;
    if (call.failed()) return call.error();
    ordinal = call.context()->ordinal;
    multiprocessors = call.machine().config(call.driver().machine_device(ordinal)).multiprocessors;
  }
  if (std::uint64_t{gx} * gy * gz >
      static_cast<std::uint64_t>(blocks) * static_cast<std::uint64_t>(multiprocessors)) {
    return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  }
  return launch(function, {{gx, gy, gz}, {bx, by, bz}, shared}, stream, params, nullptr);
}

GPUROTA_SIM_API cuFuncGetAttribute(int* value, CUfunction_attribute attribute,
                                   CUfunction function) {
  return get_attribute(function, attribute, value);
}

GPUROTA_SIM_API cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  return set_attribute(function, attribute, value);
}

GPUROTA_SIM_API cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel,
                                     CUdevice) {
  return get_attribute(kernel, attribute, value);
}

GPUROTA_SIM_API cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                                     CUdevice) {
  return set_attribute(kernel, attribute, value);
}

GPUROTA_SIM_API cuFuncSetCacheConfig(CUfunction function, CUfunc_cache) {
  return FunctionCall(function).error();
}

GPUROTA_SIM_API cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache, CUdevice) {
  return FunctionCall(kernel).error();
}

GPUROTA_SIM_API cuFuncSetSharedMemConfig(CUfunction function, CUsharedconfig) {
  return FunctionCall(function).error();
}

GPUROTA_SIM_API cuFuncGetModule(CUmodule* out, CUfunction function) {
  const FunctionCall call(function);
  if (call.failed()) return call.error();
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = reinterpret_cast<CUmodule>(call.function().module);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuFuncGetName(const char** name, CUfunction function) {
  const FunctionCall call(function);
  if (call.failed()) return call.error();
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *name = call.function().name.c_str();
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuKernelGetName(const char** name, CUkernel kernel) {
  return cuFuncGetName(name, reinterpret_cast<CUfunction>(kernel));
}

GPUROTA_SIM_API cuFuncGetParamInfo(CUfunction function, std::size_t index, std::size_t* offset,
                                   std::size_t* size) {
  return get_parameter(function, index, offset, size);
}

GPUROTA_SIM_API cuKernelGetParamInfo(CUkernel kernel, std::size_t index, std::size_t* offset,
                                     std::size_t* size) {
  return get_parameter(kernel, index, offset, size);
}

GPUROTA_SIM_API cuFuncIsLoaded(int* state, CUfunction function) {
  const FunctionCall call(function);
  if (call.failed()) return call.error();
  if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *state = 1;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuFuncLoad(CUfunction function) { return FunctionCall(function).error(); }

GPUROTA_SIM_API cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function,
                                                            int threads, std::size_t) {
  return active_blocks(function, threads, blocks);
}

GPUROTA_SIM_API cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks,
                                                                     CUfunction function,
                                                                     int threads, std::size_t,
                                                                     unsigned) {
  return active_blocks(function, threads, blocks);
}

GPUROTA_SIM_API cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction function,
                                                 CUoccupancyB2DSize, std::size_t, int limit) {
  const FunctionCall call(function);
  if (call.failed()) return call.error();
  if (grid == nullptr || block == nullptr || limit < 0) return CUDA_ERROR_INVALID_VALUE;
  const auto& gpu = call.machine().config(call.driver().visible[0]);
  *block = limit == 0 ? 1024 : std::min(limit, 1024);
  *grid = gpu.multiprocessors * std::max(1, gpu.threads_per_multiprocessor / *block);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block,
                                                          CUfunction function,
                                                          CUoccupancyB2DSize size,
                                                          std::size_t bytes, int limit, unsigned) {
  return cuOccupancyMaxPotentialBlockSize(grid, block, function, size, bytes, limit);
}

GPUROTA_SIM_API cuOccupancyAvailableDynamicSMemPerBlock(std::size_t* bytes, CUfunction function,
                                                        int blocks, int) {
  const FunctionCall call(function);
  if (call.failed()) return call.error();
  if (bytes == nullptr || blocks <= 0) return CUDA_ERROR_INVALID_VALUE;
  const auto& gpu = call.machine().config(call.driver().visible[0]);
  *bytes = static_cast<std::size_t>(gpu.shared_per_multiprocessor / blocks);
  return CUDA_SUCCESS;
}
