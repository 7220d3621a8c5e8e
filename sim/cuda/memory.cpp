#include "sim/cuda/memory.h"

#include "sim/cuda/external.h"
#include "sim/cuda/pool.h"

namespace gpurota::sim {
namespace {

CUdeviceptr address_of(const Mapping& mapping, std::size_t offset) {
  return reinterpret_cast<CUdeviceptr>(mapping.address() + offset);
}

}  // namespace

CUresult allocate_linear(Driver& driver, Context& context, std::size_t bytes, CUdeviceptr* out) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  auto piece = context.heap.allocate(*driver.machine, context.device, bytes);
  if (!piece.mapping) return CUDA_ERROR_OUT_OF_MEMORY;
  Allocation allocation;
  allocation.base = address_of(*piece.mapping, piece.offset);
  allocation.size = bytes;
  allocation.kind = Allocation::Kind::kLinear;
  allocation.context = &context;
  allocation.device = context.device;
  allocation.mapping = std::move(piece.mapping);
  allocation.mapping_offset = piece.offset;
  allocation.id = driver.machine->next_id();
  driver.space.add(allocation);
  *out = allocation.base;
  return CUDA_SUCCESS;
}

CUresult allocate_managed(Driver& driver, Context& context, std::size_t bytes, unsigned flags,
                          CUdeviceptr* out) {
  if (bytes == 0 || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto memory =
      Physical::create(*driver.machine, context.device, bytes, Physical::Sharing::kPrivate, false);
  if (!memory || !memory->reserve_host()) return CUDA_ERROR_OUT_OF_MEMORY;
  Allocation allocation;
  allocation.mapping = Mapping::create(std::move(memory), kDevicePage);
  if (!allocation.mapping) return CUDA_ERROR_OUT_OF_MEMORY;
  allocation.base = address_of(*allocation.mapping, 0);
  allocation.size = bytes;
  allocation.kind = Allocation::Kind::kManaged;
  allocation.context = &context;
  allocation.device = context.device;
  allocation.id = driver.machine->next_id();
  allocation.flags = flags;
  std::atomic<std::uint32_t>& managed = driver.machine->own_slot().managed;
  ++managed;
  allocation.prevents_parking = {&managed, [](std::atomic<std::uint32_t>* count) { --*count; }};
  driver.space.add(allocation);
  *out = allocation.base;
  return CUDA_SUCCESS;
}

CUresult allocate_host(Driver& driver, Context& context, std::size_t bytes, unsigned flags,
                       void** out) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  auto memory = Physical::create(*driver.machine, -1, bytes, Physical::Sharing::kPrivate);
  if (!memory || !memory->reserve_host()) return CUDA_ERROR_OUT_OF_MEMORY;
  Allocation allocation;
  allocation.mapping = Mapping::create(std::move(memory), 4096);
  if (!allocation.mapping || !allocation.mapping->touch(0, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  allocation.base = address_of(*allocation.mapping, 0);
  allocation.size = bytes;
  allocation.kind = Allocation::Kind::kHost;
  allocation.context = &context;
  allocation.id = driver.machine->next_id();
  allocation.flags = flags;
  driver.space.add(allocation);
  *out = host_view(allocation.base);
  return CUDA_SUCCESS;
}

void release(Driver& driver, const Allocation& allocation) {
  if (allocation.kind != Allocation::Kind::kLinear) return;  // freed with its mapping
  if (driver.contexts.find(allocation.context) == nullptr) return;
  allocation.context->heap.release(allocation.mapping, allocation.mapping_offset, allocation.size);
}

int ordinal_of(const Driver& driver, int machine_device) {
  for (std::size_t i = 0; i < driver.visible.size(); ++i) {
    if (driver.visible[i] == machine_device) return static_cast<int>(i);
  }
  return -1;
}

void destroy_memory_of(Driver& driver, Context* context) {
  (void)driver.space.remove_if([context](const Allocation& a) { return a.context == context; });
  for (ExternalMemory* e :
       driver.externals.select([&](const ExternalMemory& x) { return x.context == context; })) {
    (void)driver.externals.take(e);
  }
  const int ordinal = context->ordinal;
  const bool is_last =
      driver.contexts.select([&](const Context& c) { return c.ordinal == ordinal; }).empty();
  if (is_last) empty_pools_of(driver, ordinal);
}

}  // namespace gpurota::sim
