// Measures the overhead of libgpurota on a driver call: the hooks in this process, on a driver that
// does nothing. The figures are gpurota's cost alone; bench/gpu/overhead.cpp measures the total on
// a real driver.
#include "abi/page.h"
#include "interposer/account/headroom.h"
#include "interposer/account/state.h"
#include "interposer/driver/driver.h"
#include "interposer/os/config.h"

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>

// Pointers that the assembly defines in libgpurota.
void* (*gpurota_real_dlsym)(void*, const char*) = nullptr;
void* (*gpurota_real_dlvsym)(void*, const char*, const char*) = nullptr;
void* (*gpurota_real_dlmopen)(long, const char*, int) = nullptr;

namespace {

using namespace gpurota::interposer;

__attribute__((constructor(101))) void set_environment() {
  ::setenv("GPUROTA_LEASE", "L1", 1);
  ::setenv("GPUROTA_SOCKET", "/nowhere", 1);
}

template <typename Handle>
Handle handle(std::uintptr_t value) {
  return reinterpret_cast<Handle>(value);
}

CUresult get_current(CUcontext* out) { return *out = handle<CUcontext>(0x1000), CUDA_SUCCESS; }
CUresult get_device(CUdevice* out) { return *out = 0, CUDA_SUCCESS; }
CUresult get_count(int* out) { return *out = 1, CUDA_SUCCESS; }
CUresult get_pool(CUmemoryPool* out, CUdevice) {
  return *out = handle<CUmemoryPool>(0x2000), CUDA_SUCCESS;
}
CUresult attribute(CUmemoryPool, CUmemPool_attribute, void* value) {
  const cuuint64_t reserved = 32u << 20;
  std::memcpy(value, &reserved, sizeof(reserved));
  return CUDA_SUCCESS;
}
CUresult alloc(CUdeviceptr* out, size_t) { return *out = CUdeviceptr{1} << 40, CUDA_SUCCESS; }
CUresult release(CUdeviceptr) { return CUDA_SUCCESS; }
CUresult alloc_async(CUdeviceptr* out, size_t, CUstream) {
  return *out = CUdeviceptr{1} << 50, CUDA_SUCCESS;
}
CUresult release_async(CUdeviceptr, CUstream) { return CUDA_SUCCESS; }
CUresult is_capturing(CUstream, CUstreamCaptureStatus* out) {
  return *out = CU_STREAM_CAPTURE_STATUS_NONE, CUDA_SUCCESS;
}

template <typename F>
void install(Fn id, F* function) {
  g_real_functions[id] = reinterpret_cast<void*>(function);
}

CUresult launch(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                CUstream, void**, void**) {
  return CUDA_SUCCESS;
}

void set_up() {
  alignas(4096) static gpurota_page page;
  install(kFn_cuCtxGetCurrent, get_current);
  install(kFn_cuCtxGetDevice, get_device);
  install(kFn_cuDeviceGetCount, get_count);
  install(kFn_cuMemAlloc_v2, alloc);
  install(kFn_cuMemFree_v2, release);
  install(kFn_cuDeviceGetMemPool, get_pool);
  install(kFn_cuDeviceGetDefaultMemPool, get_pool);
  install(kFn_cuMemPoolGetAttribute, attribute);
  install(kFn_cuMemAllocAsync, alloc_async);
  install(kFn_cuMemFreeAsync, release_async);
  install(kFn_cuStreamIsCapturing, is_capturing);
  install(kFn_cuLaunchKernel, launch);
  g_driver_found.store(true);
  if (!active()) std::abort();  // the hooks do nothing unless active
  State& s = state();
  if (s.attached.exchange(1) != 0) return;
  s.page.store(&page);
  s.link.slot_count = 1;
  s.device_slot[0].store(1);
  receive_grant(s, 0, std::int64_t{512} << 20, 0);
}

void BM_AllocAndFree(benchmark::State& bench) {
  set_up();
  const auto size = static_cast<size_t>(bench.range(0));
  for (auto _ : bench) {
    CUdeviceptr p = 0;
    if (cuMemAlloc_v2(&p, size) != CUDA_SUCCESS) bench.SkipWithError("refused");
    cuMemFree_v2(p);
  }
}
BENCHMARK(BM_AllocAndFree)->Arg(64 << 10)->Arg(2 << 20)->Arg(256 << 20);

void BM_AllocAsyncAndFreeAsync(benchmark::State& bench) {
  set_up();
  for (auto _ : bench) {
    CUdeviceptr p = 0;
    if (cuMemAllocAsync(&p, 2 << 20, nullptr) != CUDA_SUCCESS) bench.SkipWithError("refused");
    cuMemFreeAsync(p, nullptr);
  }
}
BENCHMARK(BM_AllocAsyncAndFreeAsync)->ThreadRange(1, 2);

// Argument 0: through the hook, in a slice; 1: through the hook, in a swap lease with an open gate;
// 2: without the hook.
void BM_Launch(benchmark::State& bench) {
  set_up();
  state().swaps.store(bench.range(0) == 1 ? 1 : 0);
  auto* function = bench.range(0) == 2 ? &launch : &cuLaunchKernel;
  benchmark::DoNotOptimize(function);
  for (auto _ : bench) {
    benchmark::DoNotOptimize(function(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  }
  state().swaps.store(0);
}
BENCHMARK(BM_Launch)->Arg(2)->Arg(0)->Arg(1);

}  // namespace

BENCHMARK_MAIN();
