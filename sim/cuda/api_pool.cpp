// Stream-ordered allocation and memory pools.
#include "sim/cuda/graph.h"
#include "sim/cuda/memory.h"
#include "sim/cuda/pool.h"
#include "sim/cuda/stream.h"

#include <algorithm>

using gpurota::sim::AllocOp;
using gpurota::sim::Call;
using gpurota::sim::Driver;
using gpurota::sim::FreeOp;
using gpurota::sim::MemPool;
using gpurota::sim::StreamCall;
using gpurota::sim::WorkPtr;

namespace {

MemPool& current_pool(Driver& driver, int ordinal) {
  MemPool* set = driver.current_pools[static_cast<std::size_t>(ordinal)];
  return set != nullptr ? *set : gpurota::sim::default_pool(driver, ordinal);
}

CUresult capture_allocation(StreamCall& call, const MemPool& pool, std::size_t bytes,
                            CUdeviceptr* out) {
  AllocOp op;
  op.params.poolProps = pool.properties;
  op.params.bytesize = bytes;
  const CUresult result =
      gpurota::sim::make_graph_memory(call.driver(), pool.ordinal, bytes, &op.params.dptr);
  if (result != CUDA_SUCCESS) return result;
  *out = op.params.dptr;
  return call.submit(op, StreamCall::Wait::kNo);
}

CUresult allocate(CUdeviceptr* out, std::size_t bytes, CUmemoryPool handle, CUstream stream,
                  const char* function) {
  StreamCall call(stream, function);
  if (call.failed()) return call.error();
  Driver& driver = call.driver();
  MemPool* pool = handle != nullptr ? driver.pools.find(handle)
                                    : &current_pool(driver, call.stream().context->ordinal);
  if (out == nullptr || pool == nullptr || pool->is_destroyed || pool->is_imported) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (bytes == 0) {  // driver 580 does the same
    *out = 0;
    return CUDA_SUCCESS;
  }
  if (call.stream().capture) return capture_allocation(call, *pool, bytes, out);
  gpurota::sim::Context& context = *call.stream().context;
  CUresult result =
      gpurota::sim::allocate_from_pool(driver, *pool, context, call.stream(), bytes, out);
  if (result != CUDA_ERROR_OUT_OF_MEMORY || pool->pending.empty()) return result;
  // Memory freed in another stream returns when that stream reaches the free.
  std::vector<WorkPtr> points;
  for (const auto& pending : pool->pending) points.push_back(pending->point);
  driver.wait_all(points, call.lock());
  return gpurota::sim::allocate_from_pool(driver, *pool, context, call.stream(), bytes, out);
}

class PoolCall : public Call {
 public:
  explicit PoolCall(CUmemoryPool handle, const char* function = __builtin_FUNCTION())
      : Call(function) {
    if (failed()) return;
    pool_ = driver_.pools.find(handle);
    if (pool_ == nullptr || pool_->is_destroyed) error_ = CUDA_ERROR_INVALID_VALUE;
  }
  MemPool& pool() const { return *pool_; }

 private:
  MemPool* pool_ = nullptr;
};

class PoolDeviceCall : public Call {
 public:
  explicit PoolDeviceCall(CUdevice ordinal, const char* function = __builtin_FUNCTION())
      : Call(function), ordinal_(ordinal) {
    if (!failed() && driver_.machine_device(ordinal) < 0) error_ = CUDA_ERROR_INVALID_DEVICE;
  }
  MemPool& default_pool() const { return gpurota::sim::default_pool(driver_, ordinal_); }
  MemPool& current() const { return current_pool(driver_, ordinal_); }

 private:
  int ordinal_;
};

}  // namespace

GPUROTA_SIM_STREAM_API(cuMemAllocAsync, _ptsz,
                       (CUdeviceptr * out, std::size_t bytes, CUstream stream),
                       (out, bytes, stream)) {
  return allocate(out, bytes, nullptr, stream, __func__);
}

GPUROTA_SIM_STREAM_API(cuMemAllocFromPoolAsync, _ptsz,
                       (CUdeviceptr * out, std::size_t bytes, CUmemoryPool pool, CUstream stream),
                       (out, bytes, pool, stream)) {
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return allocate(out, bytes, pool, stream, __func__);
}

GPUROTA_SIM_STREAM_API(cuMemFreeAsync, _ptsz, (CUdeviceptr address, CUstream stream),
                       (address, stream)) {
  StreamCall call(stream);
  if (call.failed()) return call.error();
  if (call.stream().capture) {
    const bool is_graphs = call.driver().graph_memory.count(address) > 0;
    if (!is_graphs) return CUDA_ERROR_INVALID_VALUE;
    return call.submit(FreeOp{address}, StreamCall::Wait::kNo);
  }
  const CUresult result = gpurota::sim::free_pool_memory(call.driver(), address, &call.stream());
  if (result == CUDA_SUCCESS) return result;
  // Memory of cuMemAlloc may also be freed in stream order.
  const auto found = call.driver().space.find(address);
  if (!found || found->base != address || found->kind != gpurota::sim::Allocation::Kind::kLinear) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  gpurota::sim::Driver& driver = call.driver();
  gpurota::sim::append(driver, call.stream(), [&driver, address] {
    const std::lock_guard lock(driver.mutex);
    const auto taken = driver.space.remove(address);
    if (taken) gpurota::sim::release(driver, *taken);
    return CUDA_SUCCESS;
  });
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuDeviceGetDefaultMemPool(CUmemoryPool* out, CUdevice ordinal) {
  const PoolDeviceCall call(ordinal);
  if (call.failed()) return call.error();
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = reinterpret_cast<CUmemoryPool>(&call.default_pool());
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuDeviceGetMemPool(CUmemoryPool* out, CUdevice ordinal) {
  const PoolDeviceCall call(ordinal);
  if (call.failed()) return call.error();
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = reinterpret_cast<CUmemoryPool>(&call.current());
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuDeviceSetMemPool(CUdevice ordinal, CUmemoryPool handle) {
  const PoolDeviceCall call(ordinal);
  if (call.failed()) return call.error();
  MemPool* pool = call.driver().pools.find(handle);
  if (pool == nullptr || pool->is_destroyed || pool->ordinal != ordinal) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  call.driver().current_pools[static_cast<std::size_t>(ordinal)] = pool;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuMemGetDefaultMemPool(CUmemoryPool* out, CUmemLocation* location, int) {
  if (location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (location->type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return gpurota::sim::unsupported("cuMemGetDefaultMemPool of the host");
  }
  return cuDeviceGetDefaultMemPool(out, location->id);
}

GPUROTA_SIM_API cuMemGetMemPool(CUmemoryPool* out, CUmemLocation* location, int) {
  if (location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (location->type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return gpurota::sim::unsupported("cuMemGetMemPool of the host");
  }
  return cuDeviceGetMemPool(out, location->id);
}

GPUROTA_SIM_API cuMemSetMemPool(CUmemLocation* location, int, CUmemoryPool pool) {
  if (location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (location->type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return gpurota::sim::unsupported("cuMemSetMemPool of the host");
  }
  return cuDeviceSetMemPool(location->id, pool);
}

GPUROTA_SIM_API cuMemPoolCreate(CUmemoryPool* out, const CUmemPoolProps* properties) {
  const Call call;
  if (call.failed()) return call.error();
  if (out == nullptr || properties == nullptr ||
      properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  constexpr unsigned kHandles = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  if ((static_cast<unsigned>(properties->handleTypes) & ~kHandles) != 0) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  auto pool = std::make_unique<MemPool>();
  pool->properties = *properties;
  if (properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
    pool->ordinal = properties->location.id;
    pool->device = call.driver().machine_device(pool->ordinal);
    if (pool->device < 0) return CUDA_ERROR_INVALID_DEVICE;
  } else if (properties->location.type < CU_MEM_LOCATION_TYPE_HOST) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *out = reinterpret_cast<CUmemoryPool>(call.driver().pools.add(std::move(pool)));
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuMemPoolDestroy(CUmemoryPool handle) {
  const PoolCall call(handle);
  if (call.failed()) return call.error();
  MemPool& pool = call.pool();
  if (pool.is_default) return CUDA_ERROR_INVALID_VALUE;
  for (MemPool*& current : call.driver().current_pools) {
    if (current == &pool) current = nullptr;
  }
  pool.is_destroyed = true;
  pool.release_threshold = 0;
  gpurota::sim::trim_pool(pool, 0);
  if (pool.blocks.empty() && pool.pending.empty()) (void)call.driver().pools.take(&pool);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuMemPoolTrimTo(CUmemoryPool handle, std::size_t keep) {
  const PoolCall call(handle);
  if (call.failed()) return call.error();
  gpurota::sim::trim_pool(call.pool(), keep);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute,
                                      void* value) {
  const PoolCall call(handle);
  if (call.failed()) return call.error();
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const MemPool& pool = call.pool();
  auto& number = *static_cast<cuuint64_t*>(value);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      *static_cast<int*>(value) = pool.reuse[attribute - 1];
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      number = pool.release_threshold;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      number = pool.reserved;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      number = pool.reserved_high;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      number = pool.used;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      number = pool.used_high;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

GPUROTA_SIM_API cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute,
                                      void* value) {
  const PoolCall call(handle);
  if (call.failed()) return call.error();
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  MemPool& pool = call.pool();
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      pool.reuse[attribute - 1] = *static_cast<const int*>(value);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      pool.release_threshold = *static_cast<const cuuint64_t*>(value);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: {
      if (*static_cast<const cuuint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
      const bool is_reserved = attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH;
      (is_reserved ? pool.reserved_high : pool.used_high) = is_reserved ? pool.reserved : pool.used;
      return CUDA_SUCCESS;
    }
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

GPUROTA_SIM_API cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc* descriptions,
                                   std::size_t count) {
  const PoolCall call(handle);
  if (call.failed()) return call.error();
  if (descriptions == nullptr && count > 0) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    if (call.driver().machine_device(descriptions[i].location.id) < 0) {
      return CUDA_ERROR_INVALID_DEVICE;
    }
    call.pool().access[descriptions[i].location.id] = descriptions[i].flags;
  }
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool handle,
                                   CUmemLocation* location) {
  const PoolCall call(handle);
  if (call.failed()) return call.error();
  if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto set = call.pool().access.find(location->id);
  const bool own = location->id == call.pool().ordinal;
  *flags = set != call.pool().access.end() ? set->second
           : own                           ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                           : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuDeviceGraphMemTrim(CUdevice ordinal) {
  const PoolDeviceCall call(ordinal);
  if (call.failed()) return call.error();
  gpurota::sim::trim_graph_memory(call.driver(), ordinal);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuDeviceGetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute attribute,
                                             void* value) {
  const PoolDeviceCall call(ordinal);
  if (call.failed()) return call.error();
  if (value == nullptr || attribute > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  cuuint64_t used = 0, reserved = 0;
  for (const auto& [address, memory] : call.driver().graph_memory) {
    if (memory.ordinal != ordinal || !memory.mapping) continue;
    reserved += memory.size;
    if (memory.runs > 0) used += memory.size;
  }
  auto& high = call.driver().graph_memory_high;
  high[0] = std::max(high[0], used);
  high[1] = std::max(high[1], reserved);
  const cuuint64_t answers[] = {used, high[0], reserved, high[1]};
  *static_cast<cuuint64_t*>(value) = answers[attribute];
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuDeviceSetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute attribute,
                                             void* value) {
  const PoolDeviceCall call(ordinal);
  if (call.failed()) return call.error();
  const bool is_high = attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH ||
                       attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH;
  if (value == nullptr || !is_high) return CUDA_ERROR_INVALID_VALUE;
  call.driver().graph_memory_high[attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH ? 0 : 1] = 0;
  return CUDA_SUCCESS;
}
