// Linear, pitched and managed memory; how much is left; the allocation that an address belongs to.
#include "sim/cuda/api.h"
#include "sim/cuda/memory.h"
#include "sim/cuda/pool.h"

#include <algorithm>

using gpurota::sim::Context;
using gpurota::sim::ContextCall;
using Kind = gpurota::sim::Allocation::Kind;

namespace {

constexpr std::size_t kPitchAlignment = 512;

}  // namespace

GPUROTA_SIM_API cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  const ContextCall call;
  if (call.failed()) return call.error();
  if (free == nullptr || total == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto totals = call.machine().totals_here(call.context()->device);
  *total = totals.total;
  *free = totals.total - std::min(totals.used, totals.total);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuMemAlloc_v2(CUdeviceptr* out, std::size_t bytes) {
  const ContextCall call;
  if (call.failed()) return call.error();
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return gpurota::sim::allocate_linear(call.driver(), *call.context(), bytes, out);
}

GPUROTA_SIM_API cuMemAllocPitch_v2(CUdeviceptr* out, std::size_t* pitch, std::size_t width,
                                   std::size_t height, unsigned element) {
  const ContextCall call;
  if (call.failed()) return call.error();
  const bool is_size = element == 4 || element == 8 || element == 16;
  if (out == nullptr || pitch == nullptr || width == 0 || height == 0 || !is_size) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const std::size_t row = (width + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
  if (row < width || height > SIZE_MAX / row) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result =
      gpurota::sim::allocate_linear(call.driver(), *call.context(), row * height, out);
  if (result == CUDA_SUCCESS) *pitch = row;
  return result;
}

GPUROTA_SIM_API cuMemAllocManaged(CUdeviceptr* out, std::size_t bytes, unsigned flags) {
  const ContextCall call;
  if (call.failed()) return call.error();
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return gpurota::sim::allocate_managed(call.driver(), *call.context(), bytes, flags, out);
}

GPUROTA_SIM_API cuMemFree_v2(CUdeviceptr address) {
  ContextCall call;
  if (call.failed()) return call.error();
  if (address == 0) return CUDA_SUCCESS;
  auto& driver = call.driver();
  const auto found = driver.space.find(address);
  if (!found || found->base != address) return CUDA_ERROR_INVALID_VALUE;
  const bool is_ours = found->kind == Kind::kLinear || found->kind == Kind::kManaged ||
                       found->kind == Kind::kPool || found->kind == Kind::kGraph ||
                       found->kind == Kind::kExternal;
  if (!is_ours) return CUDA_ERROR_INVALID_VALUE;
  // Pending work may still use the memory: wait before freeing it, as the real driver does.
  Context* context = driver.contexts.find(found->context);
  if (context == nullptr) context = call.context();
  driver.wait_all(driver.tails(*context), call.lock());
  if (found->kind == Kind::kPool || found->kind == Kind::kGraph) {
    return gpurota::sim::free_pool_memory(driver, address, nullptr);
  }
  const auto taken = driver.space.remove(address);
  if (!taken) return CUDA_ERROR_INVALID_VALUE;
  gpurota::sim::release(driver, *taken);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuMemGetAddressRange_v2(CUdeviceptr* base, std::size_t* size, CUdeviceptr address) {
  const ContextCall call;
  if (call.failed()) return call.error();
  const auto found = call.driver().space.find(address);
  if (!found) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = found->base;
  if (size != nullptr) *size = found->size;
  return CUDA_SUCCESS;
}
