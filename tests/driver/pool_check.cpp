// Stream-ordered allocation: what a pool reserves, uses and frees.
#include "tests/driver/api.h"

#include <vector>

#include <unistd.h>

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

cuuint64_t attribute(CUmemoryPool pool, CUmemPool_attribute which) {
  cuuint64_t value = 0;
  return cuMemPoolGetAttribute(pool, which, &value) == CUDA_SUCCESS ? value : UINT64_MAX;
}

CUmemoryPool make_pool(CUmemAllocationHandleType handles = CU_MEM_HANDLE_TYPE_NONE) {
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.handleTypes = handles;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool pool = nullptr;
  return cuMemPoolCreate(&pool, &properties) == CUDA_SUCCESS ? pool : nullptr;
}

}  // namespace

// The driver chooses how much the second allocation adds: an H100 extends the existing chunk.
DRIVER_CHECK(a_pool_grows_in_units_of_thirty_two_mebibytes) {
  const WithContext with;
  CUmemoryPool pool = make_pool();
  EXPECT_TRUE(pool != nullptr);
  CUdeviceptr a = 0, b = 0;
  EXPECT_OK(cuMemAllocFromPoolAsync(&a, kMiB, pool, nullptr));
  EXPECT_SAME(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 32 * kMiB);
  EXPECT_SAME(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), kMiB);
  EXPECT_OK(cuMemAllocFromPoolAsync(&b, 33 * kMiB, pool, nullptr));
  const std::uint64_t reserved = attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
  EXPECT_TRUE(reserved == 64 * kMiB || reserved == 96 * kMiB);
  EXPECT_SAME(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 34 * kMiB);
  EXPECT_OK(cuMemFreeAsync(a, nullptr));
  EXPECT_OK(cuMemFreeAsync(b, nullptr));
  EXPECT_OK(cuStreamSynchronize(nullptr));
  EXPECT_SAME(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0U);
  EXPECT_SAME(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 34 * kMiB);
  EXPECT_OK(cuMemPoolDestroy(pool));
}

DRIVER_CHECK(without_a_threshold_a_synchronisation_gives_all_back) {
  const WithContext with;
  CUmemoryPool pool = make_pool();
  CUdeviceptr p = 0;
  EXPECT_OK(cuMemAllocFromPoolAsync(&p, 10 * kMiB, pool, nullptr));
  EXPECT_OK(cuMemFreeAsync(p, nullptr));
  EXPECT_OK(cuStreamSynchronize(nullptr));
  EXPECT_SAME(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0U);
  EXPECT_OK(cuMemPoolDestroy(pool));
}

DRIVER_CHECK(a_threshold_keeps_memory_until_it_is_trimmed) {
  const WithContext with;
  CUmemoryPool pool = make_pool();
  cuuint64_t threshold = UINT64_MAX;
  CUdeviceptr p = 0;
  EXPECT_OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  EXPECT_OK(cuMemAllocFromPoolAsync(&p, 10 * kMiB, pool, nullptr));
  EXPECT_OK(cuMemFreeAsync(p, nullptr));
  EXPECT_OK(cuStreamSynchronize(nullptr));
  EXPECT_SAME(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 32 * kMiB);
  EXPECT_OK(cuMemPoolTrimTo(pool, 0));
  EXPECT_SAME(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0U);
  EXPECT_OK(cuMemPoolDestroy(pool));
}

DRIVER_CHECK(freed_in_a_stream_is_reused_in_it_at_once) {
  WithContext with;
  CUmemoryPool pool = make_pool();
  CUstream stream = nullptr;
  CUdeviceptr a = 0, b = 0;
  EXPECT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(spin(with.kernel("spin_us"), stream, 10000));
  EXPECT_OK(cuMemAllocFromPoolAsync(&a, 4 * kMiB, pool, stream));
  EXPECT_OK(cuMemFreeAsync(a, stream));
  EXPECT_OK(cuMemAllocFromPoolAsync(&b, 4 * kMiB, pool, stream));
  EXPECT_SAME(a, b);
  EXPECT_OK(cuMemFreeAsync(b, stream));
  EXPECT_OK(cuStreamSynchronize(stream));
  EXPECT_OK(cuStreamDestroy_v2(stream));
  EXPECT_OK(cuMemPoolDestroy(pool));
}

DRIVER_CHECK(memory_of_a_pool_takes_copies_and_kernels_in_stream_order) {
  WithContext with;
  CUstream stream = nullptr;
  CUdeviceptr p = 0;
  EXPECT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(cuMemAllocAsync(&p, kMiB, stream));
  EXPECT_OK(cuMemsetD32Async(p, 40, kMiB / 4, stream));
  std::uint32_t value = 2;
  std::uint64_t count = kMiB / 4;
  void* arguments[] = {&p, &value, &count};
  EXPECT_OK(launch(with.kernel("add_u32"), stream, arguments));
  std::vector<std::uint32_t> out(kMiB / 4);
  EXPECT_OK(cuMemcpyDtoHAsync_v2(out.data(), p, kMiB, stream));
  EXPECT_OK(cuMemFreeAsync(p, stream));
  EXPECT_OK(cuStreamSynchronize(stream));
  EXPECT_SAME(out.front(), 42U);
  EXPECT_SAME(out.back(), 42U);
  EXPECT_OK(cuStreamDestroy_v2(stream));
}

DRIVER_CHECK(what_the_current_pool_gave_can_be_exported_if_that_can) {
  const auto set = function<CUresult(CUdevice, CUmemoryPool)>("cuDeviceSetMemPool");
  const auto get = function<CUresult(CUmemoryPool*, CUdevice)>("cuDeviceGetMemPool");
  const auto exported =
      function<CUresult(CUmemPoolPtrExportData*, CUdeviceptr)>("cuMemPoolExportPointer");
  const auto share =
      function<CUresult(void*, CUmemoryPool, CUmemAllocationHandleType, unsigned long long)>(
          "cuMemPoolExportToShareableHandle");
  const WithContext with;
  int fd = -1;
  CUmemoryPool before = nullptr;
  CUmemoryPool pool = make_pool(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  CUmemPoolPtrExportData data = {};
  CUdeviceptr p = 0;
  EXPECT_TRUE(pool != nullptr);
  EXPECT_OK(get(&before, 0));
  EXPECT_OK(set(0, pool));
  EXPECT_OK(cuMemAllocAsync(&p, kMiB, nullptr));
  EXPECT_CODE(exported(&data, p), CUDA_ERROR_INVALID_VALUE);  // before the pool itself was exported
  EXPECT_OK(share(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  EXPECT_OK(exported(&data, p));
  ::close(fd);
  EXPECT_OK(cuMemFreeAsync(p, nullptr));
  EXPECT_OK(cuStreamSynchronize(nullptr));
  EXPECT_OK(set(0, before));
  EXPECT_OK(cuMemPoolDestroy(pool));
}

// Since CUDA 13.
DRIVER_CHECK(a_pool_is_made_current_by_location_as_by_device) {
  using Get = CUresult(CUmemoryPool*, CUmemLocation*, CUmemAllocationType);
  const auto set =
      function<CUresult(CUmemLocation*, CUmemAllocationType, CUmemoryPool)>("cuMemSetMemPool");
  const auto get = function<Get>("cuMemGetMemPool");
  const auto get_default = function<Get>("cuMemGetDefaultMemPool");
  const auto get_of_device = function<CUresult(CUmemoryPool*, CUdevice)>("cuDeviceGetMemPool");
  if (set == nullptr || get == nullptr || get_default == nullptr) return skip_check("no CUDA 13");
  const WithContext with;
  CUmemLocation place = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool pool = make_pool();
  CUmemoryPool first = nullptr, now = nullptr;
  CUdeviceptr p = 0;
  EXPECT_OK(get_default(&first, &place, CU_MEM_ALLOCATION_TYPE_PINNED));
  EXPECT_OK(set(&place, CU_MEM_ALLOCATION_TYPE_PINNED, pool));
  EXPECT_OK(get(&now, &place, CU_MEM_ALLOCATION_TYPE_PINNED));
  EXPECT_TRUE(now == pool);
  EXPECT_OK(get_of_device(&now, 0));
  EXPECT_TRUE(now == pool);
  EXPECT_OK(cuMemAllocAsync(&p, kMiB, nullptr));
  EXPECT_OK(cuMemFreeAsync(p, nullptr));
  EXPECT_OK(cuStreamSynchronize(nullptr));
  EXPECT_OK(set(&place, CU_MEM_ALLOCATION_TYPE_PINNED, first));
  EXPECT_OK(cuMemPoolDestroy(pool));
}

DRIVER_CHECK(freeing_what_no_pool_gave_is_refused) {
  const WithContext with;
  CUdeviceptr p = 0;
  EXPECT_OK(cuMemAllocAsync(&p, kMiB, nullptr));
  EXPECT_OK(cuStreamSynchronize(nullptr));
  EXPECT_CODE(cuMemFreeAsync(p + 512, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(cuMemFreeAsync(p, nullptr));
  EXPECT_OK(cuMemAllocAsync(&p, 0, nullptr));
  EXPECT_OK(cuStreamSynchronize(nullptr));
}
