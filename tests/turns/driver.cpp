#include "tests/turns/driver.h"

#include <cstdio>

#include <sys/mman.h>

namespace turns_test {
namespace {

constexpr unsigned kFences = 64;  // more than the blocks in flight at any time

CUcontext g_context = nullptr;
CUstream g_stream = nullptr;
CUevent g_events[kFences];
std::uint64_t g_last_fence = 0;

CUmemLocation device() { return {CU_MEM_LOCATION_TYPE_DEVICE, 0}; }

CUresult reserve(void*, std::uint64_t size, std::uint64_t* address) {
  CUdeviceptr at = 0;
  const CUresult result = cuMemAddressReserve(&at, size, 0, 0, 0);
  *address = at;
  return result;
}

CUresult unreserve(void*, std::uint64_t address, std::uint64_t size) {
  return cuMemAddressFree(address, size);
}

CUresult create(void*, std::uint64_t size, std::uint32_t, std::uint64_t* handle) {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = device();
  CUmemGenericAllocationHandle made = 0;
  const CUresult result = cuMemCreate(&made, size, &prop, 0);
  *handle = made;
  return result;
}

CUresult release(void*, std::uint64_t handle) { return cuMemRelease(handle); }
CUresult map(void*, std::uint64_t address, std::uint64_t size, std::uint64_t offset,
             std::uint64_t handle) {
  return cuMemMap(address, size, offset, handle, 0);
}
CUresult unmap(void*, std::uint64_t address, std::uint64_t size) {
  return cuMemUnmap(address, size);
}

CUresult set_access(void*, std::uint64_t address, std::uint64_t size) {
  const CUmemAccessDesc access = {device(), CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  return cuMemSetAccess(address, size, &access, 1);
}

CUresult allow(void*, std::uint64_t, std::uint64_t, std::uint64_t) { return CUDA_SUCCESS; }

CUresult copy_out(void*, void* host, std::uint64_t address, std::uint64_t size) {
  return cuMemcpyDtoHAsync_v2(host, address, size, g_stream);
}
CUresult copy_in(void*, std::uint64_t address, const void* host, std::uint64_t size) {
  return cuMemcpyHtoDAsync_v2(address, host, size, g_stream);
}

CUresult fence(void*, std::uint64_t* token) {
  *token = ++g_last_fence;
  return cuEventRecord(g_events[*token % kFences], g_stream);
}
CUresult wait(void*, std::uint64_t token) { return cuEventSynchronize(g_events[token % kFences]); }

void* map_host(void*, std::uint64_t size, bool /*hurry*/) {
  void* p = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  ::madvise(p, size, MADV_HUGEPAGE);
  ::madvise(p, size, MADV_DONTFORK);
  ::madvise(p, size, MADV_DONTDUMP);
  return p;
}
void unmap_host(void*, void* memory, std::uint64_t size) { ::munmap(memory, size); }
bool pin(void*, void* memory, std::uint64_t size) {
  return cuMemHostRegister_v2(memory, size, 0) == CUDA_SUCCESS;
}
void unpin(void*, void* memory) { cuMemHostUnregister(memory); }

bool failed(CUresult result, const char* what) {
  if (result != CUDA_SUCCESS) std::fprintf(stderr, "%s fails with %d\n", what, result);
  return result != CUDA_SUCCESS;
}

}  // namespace

bool open_driver() {
  if (!load_driver()) return false;
  CUdevice gpu = 0;
  if (failed(cuInit(0), "cuInit") || failed(cuDeviceGet(&gpu, 0), "cuDeviceGet") ||
      failed(cuDevicePrimaryCtxRetain(&g_context, gpu), "cuDevicePrimaryCtxRetain") ||
      failed(cuCtxSetCurrent(g_context), "cuCtxSetCurrent") ||
      failed(cuStreamCreate(&g_stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate")) {
    return false;
  }
  for (CUevent& event : g_events) {
    if (failed(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate")) return false;
  }
  return true;
}

void use_driver() { cuCtxSetCurrent(g_context); }

gpurota::interposer::SwapCalls make_calls() {
  return {.self = nullptr,
          .reserve = reserve,
          .unreserve = unreserve,
          .create = create,
          .release = release,
          .map = map,
          .unmap = unmap,
          .set_access = set_access,
          .copy_out = copy_out,
          .copy_in = copy_in,
          .fence = fence,
          .wait = wait,
          .map_host = map_host,
          .unmap_host = unmap_host,
          .pin = pin,
          .unpin = unpin,
          .allow = allow};
}

}  // namespace turns_test
