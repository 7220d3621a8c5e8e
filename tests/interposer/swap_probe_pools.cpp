// Stream-ordered memory at the limit of the lease: freed memory that is no longer used is available
// at once to every family. Also checks the pool figures that a program sees.
#include "tests/interposer/swap_probe.h"

#include <functional>
#include <thread>
#include <vector>

namespace {

CUmemoryPool default_pool() {
  CUmemoryPool pool = nullptr;
  OK(cuDeviceGetDefaultMemPool(&pool, 0));
  return pool;
}

std::uint64_t left() {
  std::size_t free = 0, total = 0;
  return OK(cuMemGetInfo_v2(&free, &total)) ? free : 0;
}

bool is_figure(CUmemoryPool pool, CUmemPool_attribute which, std::uint64_t wanted, int line) {
  std::uint64_t value = 0;
  if (!ok(cuMemPoolGetAttribute(pool, which, &value), "cuMemPoolGetAttribute", line)) return false;
  if (value == wanted) return true;
  std::printf("line %d: attribute %d is %llu, not %llu\n", line, static_cast<int>(which),
              static_cast<unsigned long long>(value), static_cast<unsigned long long>(wanted));
  g_wrong = true;
  return false;
}
#define FIGURE(which, wanted) is_figure(pool, CU_MEMPOOL_ATTR_##which, wanted, __LINE__)

// A family that allocates all that is left, and frees it.
struct Family {
  const char* name;
  std::function<CUresult(std::uint64_t bytes)> take;
  std::function<CUresult()> give_back;
};

std::vector<Family> families(CUstream other) {
  static CUdeviceptr p = 0;
  static CUmemGenericAllocationHandle handle = 0;
  static CUarray array = nullptr;
  const auto free = [] { return cuMemFree_v2(p); };
  return {
      {"cuMemAlloc", [](std::uint64_t n) { return cuMemAlloc_v2(&p, n); }, free},
      {"cuMemAllocPitch",
       [](std::uint64_t n) {
         std::size_t pitch = 0;
         return cuMemAllocPitch_v2(&p, &pitch, kMiB, n / kMiB, 4);
       },
       free},
      {"cuMemAllocManaged", [](std::uint64_t n) { return cuMemAllocManaged(&p, n, 1); }, free},
      {"cuMemCreate",
       [](std::uint64_t n) {
         CUmemAllocationProp prop = {};
         prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
         prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
         return cuMemCreate(&handle, n, &prop, 0);
       },
       [] { return cuMemRelease(handle); }},
      {"cuArray3DCreate",
       [](std::uint64_t n) {
         CUDA_ARRAY3D_DESCRIPTOR shape = {};
         shape.Width = 4096;
         shape.Height = n / 2 / 4096;
         shape.Format = CU_AD_FORMAT_UNSIGNED_INT8;
         shape.NumChannels = 1;
         return cuArray3DCreate_v2(&array, &shape);
       },
       [] { return cuArrayDestroy(array); }},
      {"cuMemAllocAsync", [other](std::uint64_t n) { return cuMemAllocAsync(&p, n, other); },
       [other] {
         const CUresult result = cuMemFreeAsync(p, other);
         return result == CUDA_SUCCESS ? cuStreamSynchronize(other) : result;
       }},
  };
}

// Made before the driver is initialised, and therefore destroyed after the driver.
struct Ending {
  bool slow = false;
  ~Ending() {
    if (!slow) return;
    std::size_t free = 0, total = 0;
    say(cuMemGetInfo_v2(&free, &total) == CUDA_ERROR_DEINITIALIZED ? "ending" : "not ending");
    pollfd line{0, POLLIN, 0};
    ::poll(&line, 1, 20000);
  }
} g_ending;

}  // namespace

int end_slowly() {
  CUcontext context = nullptr;
  CUdeviceptr p = 0;
  if (!OK(cuInit(0)) || !OK(cuCtxCreate_v2(&context, 0, 0)) || !OK(cuMemAlloc_v2(&p, 90 * kMiB))) {
    return 1;
  }
  g_ending.slow = true;
  return 0;
}

int freed_is_free() {
  if (!OK(cuInit(0))) return 1;
  const WithContext with;
  CUstream stream = nullptr, other = nullptr;
  if (!OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)) ||
      !OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING))) {
    return 1;
  }
  for (int round = 0; round < 20 && !g_wrong; ++round) {
    for (const Family& family : families(other)) {
      const std::uint64_t all = left() / (2 * kMiB) * (2 * kMiB);
      CUdeviceptr p = 0;
      if (!OK(cuMemAllocAsync(&p, all, stream)) || !OK(cuMemFreeAsync(p, stream)) ||
          !OK(cuStreamSynchronize(stream))) {
        return 1;
      }
      if (round % 2 == 0 && !OK(cuMemPoolTrimTo(default_pool(), 0))) return 1;
      if (!ok(family.take(all), family.name, __LINE__) || !OK(family.give_back())) return 1;
    }
  }
  return g_wrong ? 1 : 0;
}

// As with the driver's pools: memory that another stream still uses can be allocated behind that
// stream's work.
int freed_behind_work() {
  if (!OK(cuInit(0))) return 1;
  WithContext with;
  CUstream stream = nullptr, other = nullptr;
  if (!OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)) ||
      !OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING))) {
    return 1;
  }
  const std::uint64_t all = left() / (2 * kMiB) * (2 * kMiB);
  for (const std::uint64_t wanted : {all, all / 2}) {
    CUdeviceptr p = 0, q = 0;
    unsigned read = 0;
    if (!OK(cuMemAllocAsync(&p, all, stream)) ||
        !OK(spin(with.kernel("spin_us"), stream, 100000)) ||
        !OK(cuMemsetD32Async(p, 1, 1, stream)) || !OK(cuMemFreeAsync(p, stream)) ||
        !OK(cuMemAllocAsync(&q, wanted, other)) || !OK(cuMemsetD32Async(q, 2, 1, other)) ||
        !OK(cuMemcpyDtoHAsync_v2(&read, q, 4, other)) || !OK(cuStreamSynchronize(other)) ||
        !SAME(read, 2) || !OK(cuMemFreeAsync(q, other)) || !OK(cuStreamSynchronize(stream)) ||
        !OK(cuStreamSynchronize(other))) {
      return 1;
    }
  }
  return 0;
}

// As PyTorch's threads do: one stream frees memory that another still uses. Such use is wrong, but
// works with the driver's pools, because freed memory of a pool stays mapped.
int freed_in_another_stream() {
  if (!OK(cuInit(0))) return 1;
  WithContext with;
  CUstream stream = nullptr, user = nullptr;
  CUdeviceptr p = 0, q = 0;
  if (!OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)) ||
      !OK(cuStreamCreate(&user, CU_STREAM_NON_BLOCKING))) {
    return 1;
  }
  for (int i = 0; i < 5 && !g_wrong; ++i) {
    if (!OK(cuMemAllocAsync(&p, 8 * kMiB, stream)) || !OK(cuStreamSynchronize(stream)) ||
        !OK(spin(with.kernel("spin_us"), user, 150000)) ||
        !OK(cuMemsetD32Async(p, 5, 2 * kMiB, user)) || !OK(cuMemFreeAsync(p, stream)) ||
        !OK(cuStreamSynchronize(stream)) || !OK(cuMemAllocAsync(&q, 20 * kMiB, stream)) ||
        !OK(cuMemFreeAsync(q, stream)) || left() == 0 || !OK(cuStreamSynchronize(user))) {
      return 1;
    }
  }
  return g_wrong ? 1 : 0;
}

// Frees on a thread that never had a context, because any thread may run a destructor. An error of
// such a free ends PyTorch.
int freed_by_a_stranger() {
  if (!OK(cuInit(0))) return 1;
  const WithContext with;
  CUstream stream = nullptr;
  CUdeviceptr p = 0;
  if (!OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING))) return 1;
  for (int i = 0; i < 20 && !g_wrong; ++i) {
    if (!OK(cuMemAllocAsync(&p, 3 * kMiB, stream))) return 1;
    std::thread([&] { OK(cuMemFreeAsync(p, stream)); }).join();
  }
  OK(cuStreamSynchronize(stream));
  return g_wrong ? 1 : 0;
}

// The expected figures were measured on driver 580. Unlike the driver's pools, a pool of a swap
// lease keeps no freed memory.
int pool_figures() {
  if (!OK(cuInit(0))) return 1;
  const WithContext with;
  CUmemoryPool pool = default_pool();
  CUstream stream = nullptr;
  CUdeviceptr a = 0, b = 0, c = 0;
  if (!OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING))) return 1;
  FIGURE(USED_MEM_CURRENT, 0);
  FIGURE(RESERVED_MEM_CURRENT, 0);
  OK(cuMemAllocAsync(&a, 1000, stream));
  FIGURE(USED_MEM_CURRENT, 1000);
  FIGURE(RESERVED_MEM_CURRENT, 32 * kMiB);
  OK(cuMemAllocAsync(&b, 1, stream));
  OK(cuMemAllocAsync(&c, 40 * kMiB, stream));
  FIGURE(USED_MEM_CURRENT, 1001 + 40 * kMiB);
  FIGURE(RESERVED_MEM_CURRENT, 64 * kMiB);
  OK(cuMemFreeAsync(c, stream));
  FIGURE(USED_MEM_CURRENT, 1001);
  FIGURE(USED_MEM_HIGH, 1001 + 40 * kMiB);
  OK(cuMemAllocAsync(&c, 40 * kMiB, stream));  // gets the memory that was just freed
  FIGURE(USED_MEM_CURRENT, 1001 + 40 * kMiB);
  FIGURE(USED_MEM_HIGH, 1001 + 40 * kMiB);
  for (const CUdeviceptr p : {a, b, c}) OK(cuMemFreeAsync(p, stream));
  OK(cuStreamSynchronize(stream));
  FIGURE(USED_MEM_CURRENT, 0);
  FIGURE(RESERVED_MEM_CURRENT, 0);
  FIGURE(RESERVED_MEM_HIGH, 64 * kMiB);
  std::uint64_t zero = 0;
  OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
  OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &zero));
  FIGURE(USED_MEM_HIGH, 0);
  FIGURE(RESERVED_MEM_HIGH, 0);
  return g_wrong ? 1 : 0;
}
