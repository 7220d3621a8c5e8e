// Answers a program's queries about memory that moves, from our tables, so that the memory need not
// be resident. The answers are those for memory of cuMemAlloc, or for memory that the program
// mapped itself.
#include "interposer/account/device.h"
#include "interposer/driver/driver.h"
#include "interposer/swap/allocations.h"
#include "interposer/swap/opened.h"
#include "interposer/swap/swap_allocate.h"
#include "interposer/swap/tenant.h"
#include "interposer/swap/virtual_memory.h"

namespace gpurota::interposer {
namespace {

constexpr unsigned kReadWrite = 3;  // CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE

template <typename T>
CUresult put(void* out, T value) {
  *static_cast<T*>(out) = value;
  return CUDA_SUCCESS;
}

// The memory at an address.
struct Known {
  uint64_t base;
  uint64_t size;
  CUdevice device;
  CUcontext context = nullptr;  // nullptr: none, as for mapped memory
  unsigned access;
  uint32_t traits = 0;
  bool shared_by_handle = false;  // can be shared by a handle
  AddressRange mapping;           // the pages it lies in
};

unsigned most_access(uint64_t access) {
  unsigned most = 0;
  for (; access != 0; access >>= 2) {
    if ((access & 3) > most) most = access & 3;
  }
  return most;
}

bool find_opened_memory(State& s, uint64_t address, Known* out) {
  Opened opened;
  if (!find_opened(s, address, &opened)) return false;
  *out = {.base = opened.address,
          .size = opened.size,
          .device = opened.device,
          .context = context_of_serial(opened.context),
          .access = kReadWrite,
          .mapping = {opened.mapped, opened.mapped_size}};
  return true;
}

bool find_allocated(State& s, uint64_t address, Known* out) {
  SwapFound found;
  SwapBacking backing;
  if (!swap_find(s, address, &found)) return false;
  const Allocation& a = found.allocation;
  SwapDevice& device = swap_of(s).devices[a.slot];
  if (!device.space.find_backing(found.base, &backing)) return false;
  *out = {.base = found.base,
          .size = a.size,
          .device = device.device,
          .context = context_of_serial(a.context),
          .access = kReadWrite,
          .shared_by_handle = device.calls.traits != 0,
          .mapping = {backing.address, backing.size}};
  return true;
}

bool find_mapped(State& s, uint64_t address, Known* out) {
  VirtualFound found;
  if (!virtual_find(s, address, &found)) return false;
  *out = {.base = found.mapping.address,
          .size = found.mapping.size,
          .device = swap_of(s).devices[found.slot].device,
          .access = most_access(found.access),
          .traits = found.traits,
          .mapping = found.mapping};
  return true;
}

// Finds memory that moves, and memory that another process shares with this one.
bool find_known(State& s, uint64_t address, Known* out) {
  if (find_opened_memory(s, address, out)) return true;
  return swapping() && (find_allocated(s, address, out) || find_mapped(s, address, out));
}

CUresult answer(const Known& known, uint64_t address, CUpointer_attribute attribute, void* out) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return put(out, known.context);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return put<unsigned>(out, CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return put<CUdeviceptr>(out, address);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return put<unsigned char>(out, 0);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return put<unsigned char>(out, known.shared_by_handle ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      return put<unsigned char>(out, (known.traits & kRdmaCapable) != 0 ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return put<unsigned char>(out, 1);
    // Unique among all live allocations.
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return put<unsigned long long>(out, known.base);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return put<int>(out, known.device);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return put<CUdeviceptr>(out, known.base);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return put<size_t>(out, known.size);
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return put<CUdeviceptr>(out, known.mapping.address);
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return put<size_t>(out, known.mapping.size);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return put<unsigned>(out, known.traits & kHandleTypes);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return put<unsigned>(out, known.access);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return put<CUmemoryPool>(out, nullptr);
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

// The answer for an attribute that does not apply, where several are asked for at once.
void answer_none(CUpointer_attribute attribute, void* out) {
  if (attribute == CU_POINTER_ATTRIBUTE_HOST_POINTER) put<void*>(out, nullptr);
}

template <typename Ptr, typename Size>
void tell_range(const Known& found, Ptr* base, Size* size) {
  if (base != nullptr) *base = static_cast<Ptr>(found.base);
  if (size != nullptr) *size = static_cast<Size>(found.size);
}

}  // namespace
}  // namespace gpurota::interposer

namespace interposer = gpurota::interposer;
using interposer::find_known;
using interposer::Known;
using interposer::state;
using interposer::swap_find;
using interposer::SwapFound;
using interposer::swapping;

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* size, CUdeviceptr ptr) {
  GPUROTA_ENTER(cuMemGetAddressRange_v2, base, size, ptr);
  Known found;
  if (!find_known(state(), ptr, &found)) return real(base, size, ptr);
  interposer::tell_range(found, base, size);
  return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange(CUdeviceptr_v1* base, unsigned int* size, CUdeviceptr_v1 ptr) {
  GPUROTA_ENTER(cuMemGetAddressRange, base, size, ptr);
  Known found;
  if (!find_known(state(), ptr, &found)) return real(base, size, ptr);
  interposer::tell_range(found, base, size);
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void* out, CUpointer_attribute attribute, CUdeviceptr ptr) {
  GPUROTA_ENTER(cuPointerGetAttribute, out, attribute, ptr);
  Known found;
  if (out == nullptr || !find_known(state(), ptr, &found)) {
    return real(out, attribute, ptr);
  }
  return interposer::answer(found, ptr, attribute, out);
}

CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** out,
                                CUdeviceptr ptr) {
  GPUROTA_ENTER(cuPointerGetAttributes, count, attributes, out, ptr);
  Known found;
  if (count == 0 || attributes == nullptr || out == nullptr || !find_known(state(), ptr, &found)) {
    return real(count, attributes, out, ptr);
  }
  for (unsigned i = 0; i < count; ++i) {
    if (interposer::answer(found, ptr, attributes[i], out[i]) != CUDA_SUCCESS) {
      interposer::answer_none(attributes[i], out[i]);
    }
  }
  return CUDA_SUCCESS;
}

CUresult cuMemGetHandleForAddressRange(void* out, CUdeviceptr ptr, size_t size, int type,
                                       unsigned long long flags) {
  GPUROTA_ENTER(cuMemGetHandleForAddressRange, out, ptr, size, type, flags);
  SwapFound found;
  if (!swapping()) return real(out, ptr, size, type, flags);
  if (swap_find(state(), ptr, &found)) return CUDA_ERROR_NOT_SUPPORTED;
  const CUresult stays = interposer::virtual_wire_range(state(), {ptr, size});
  return stays != CUDA_SUCCESS ? stays : real(out, ptr, size, type, flags);
}
