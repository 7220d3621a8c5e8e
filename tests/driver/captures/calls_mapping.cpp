// Calls about memory that a program maps itself, and about memory and events shared between
// processes.
#include "tests/driver/captures/scene.h"
#include "tests/driver/device_memory.h"

#include <cstdint>
#include <iterator>

namespace captures {
namespace {

constexpr auto kDescriptor = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
constexpr int kDmaBuffer = 1;  // CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD

CUresult create(Scene& s) {
  const CUmemAllocationProp prop = device_memory(kDescriptor);
  return cuMemCreate(&s.handle, kBlock, &prop, 0);
}

CUresult reserve(Scene& s) { return cuMemAddressReserve(&s.reserved, kBlock, 0, 0, 0); }

CUresult map(Scene& s) {
  const CUresult result = cuMemMap(s.reserved, kBlock, 0, s.handle, 0);
  s.mapped = result == CUDA_SUCCESS;
  return result;
}

CUresult unmap(Scene& s) { return gone(s.mapped, cuMemUnmap(s.reserved, kBlock)); }

CUresult give_access(Scene& s) { return cuMemSetAccess(s.reserved, kBlock, &kReadWrite, 1); }

CUresult export_handle(Scene& s) {
  return cuMemExportToShareableHandle(&s.descriptor, s.handle, kDescriptor, 0);
}

CUipcMemHandle g_own_handle = {};

CUresult own_handle(Scene& s) { return cuIpcGetMemHandle(&g_own_handle, s.memory); }

void with_handle(Scene& s) { s.need(create(s)); }
void with_addresses(Scene& s) { s.need(reserve(s)); }
void with_both(Scene& s) {
  with_handle(s);
  with_addresses(s);
}
void with_mapping(Scene& s) {
  with_both(s);
  s.need(map(s));
}
void with_access(Scene& s) {
  with_mapping(s);
  s.need(give_access(s));
}
void with_descriptor(Scene& s) {
  with_handle(s);
  s.need(export_handle(s));
}

const Call kMapping[] = {
    {"cuMemGetAllocationGranularity",
     "-",
     {},
     [](Scene&) {
       const CUmemAllocationProp prop = device_memory();
       std::size_t size = 0;
       return cuMemGetAllocationGranularity(&size, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
     }},
    {"cuMemAddressReserve", "-", {}, reserve},
    {"cuMemAddressFree", "-", with_addresses,
     [](Scene& s) { return gone(s.reserved, cuMemAddressFree(s.reserved, kBlock)); }},
    {"cuMemCreate", "-", {}, create},
    {"cuMemRelease", "-", with_handle,
     [](Scene& s) { return gone(s.handle, cuMemRelease(s.handle)); }},
    {"cuMemRelease", "mapped", with_access,
     [](Scene& s) { return gone(s.handle, cuMemRelease(s.handle)); }},
    {"cuMemMap", "-", with_both, map},
    {"cuMemSetAccess", "-", with_mapping, give_access},
    {"cuMemUnmap", "without access", with_mapping, unmap},
    {"cuMemUnmap", "with access", with_access, unmap},
    {"cuMemGetAccess", "-", with_access,
     [](Scene& s) {
       unsigned long long flags = 0;
       const CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
       return cuMemGetAccess(&flags, &here, s.reserved);
     }},
    {"cuMemGetAllocationPropertiesFromHandle", "-", with_handle,
     [](Scene& s) {
       CUmemAllocationProp prop = {};
       return cuMemGetAllocationPropertiesFromHandle(&prop, s.handle);
     }},
    {"cuMemRetainAllocationHandle", "-", with_mapping,
     [](Scene& s) {
       return cuMemRetainAllocationHandle(&s.second_handle, reinterpret_cast<void*>(s.reserved));
     }},
    {"cuMemExportToShareableHandle", "-", with_handle, export_handle},
    {"cuMemImportFromShareableHandle", "-", with_descriptor,
     [](Scene& s) {
       auto* const os_handle = reinterpret_cast<void*>(static_cast<std::intptr_t>(s.descriptor));
       return cuMemImportFromShareableHandle(&s.second_handle, os_handle, kDescriptor);
     }},
    {"cuMemGetHandleForAddressRange", "-", with_access,
     [](Scene& s) {
       return cuMemGetHandleForAddressRange(&s.descriptor, s.reserved, kBlock, kDmaBuffer, 0);
     }},
};

// These handles are opened by the process that made them. The driver always refuses to open memory
// in the process that made it, but the result still shows whether the driver checks captures first.
const Call kShared[] = {
    {"cuIpcGetMemHandle",
     "-",
     {},
     [](Scene& s) {
       CUipcMemHandle handle = {};
       return cuIpcGetMemHandle(&handle, s.memory);
     }},
    {"cuIpcOpenMemHandle_v2", "own handle", [](Scene& s) { s.need(own_handle(s)); },
     [](Scene&) {
       CUdeviceptr opened = 0;
       return cuIpcOpenMemHandle_v2(&opened, g_own_handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
     }},
    {"cuIpcCloseMemHandle", "not opened", {}, [](Scene&) { return cuIpcCloseMemHandle(0x1000); }},
    {"cuIpcGetEventHandle", "-",
     [](Scene& s) {
       s.need(cuEventCreate(&s.event, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
     },
     [](Scene& s) {
       CUipcEventHandle handle = {};
       return cuIpcGetEventHandle(&handle, s.event);
     }},
};

}  // namespace

void add_mapping_calls(std::vector<Call>& calls) {
  calls.insert(calls.end(), std::begin(kMapping), std::end(kMapping));
  calls.insert(calls.end(), std::begin(kShared), std::end(kShared));
}

}  // namespace captures
