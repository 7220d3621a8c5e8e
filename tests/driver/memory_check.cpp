// The linear, pitched, managed and host families: allocating, finding, counting and freeing.
#include "tests/driver/api.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {
constexpr std::size_t kMiB = std::size_t{1} << 20;

std::size_t free_bytes() {
  std::size_t free = 0, total = 0;
  return cuMemGetInfo_v2(&free, &total) == CUDA_SUCCESS ? free : 0;
}
}  // namespace

DRIVER_CHECK(calls_before_cuInit_say_not_initialised) {
  int count = 0;
  const int code = in_child([] {
    int n = 0;
    return static_cast<int>(cuDeviceGetCount(&n));
  });
  EXPECT_SAME(code, static_cast<int>(CUDA_ERROR_NOT_INITIALIZED));
  EXPECT_OK(cuInit(0));
  EXPECT_OK(cuDeviceGetCount(&count));
  EXPECT_TRUE(count >= 1);
  EXPECT_CODE(cuInit(1), CUDA_ERROR_INVALID_VALUE);
}

DRIVER_CHECK(without_a_context_memory_calls_say_so) {
  CUdeviceptr p = 0;
  EXPECT_OK(cuInit(0));
  EXPECT_CODE(cuMemAlloc_v2(&p, kMiB), CUDA_ERROR_INVALID_CONTEXT);
}

DRIVER_CHECK(bytes_written_to_linear_memory_come_back) {
  const WithContext with;
  std::vector<unsigned char> in(3 * kMiB + 17), out(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<unsigned char>(i * 31 + i / 257);
  CUdeviceptr p = 0;
  EXPECT_OK(cuMemAlloc_v2(&p, in.size()));
  EXPECT_TRUE(p % 256 == 0);
  EXPECT_OK(cuMemcpyHtoD_v2(p, in.data(), in.size()));
  EXPECT_OK(cuMemcpyDtoH_v2(out.data(), p, out.size()));
  EXPECT_TRUE(in == out);
  EXPECT_OK(cuMemFree_v2(p));
}

DRIVER_CHECK(a_large_allocation_is_counted_while_it_lives) {
  const WithContext with;
  const std::size_t before = free_bytes();
  CUdeviceptr p = 0;
  EXPECT_OK(cuMemAlloc_v2(&p, 256 * kMiB));
  EXPECT_SAME(before - free_bytes(), 256 * kMiB);
  EXPECT_OK(cuMemFree_v2(p));
  EXPECT_SAME(free_bytes(), before);
}

DRIVER_CHECK(small_allocations_share_two_mebibytes) {
  const WithContext with;
  CUdeviceptr first = 0, more[8] = {};
  EXPECT_OK(cuMemAlloc_v2(&first, 1000));
  const std::size_t before = free_bytes();
  for (CUdeviceptr& p : more) EXPECT_OK(cuMemAlloc_v2(&p, 1000));
  EXPECT_SAME(free_bytes(), before);
  for (const CUdeviceptr p : more) EXPECT_OK(cuMemFree_v2(p));
  EXPECT_OK(cuMemFree_v2(first));
}

DRIVER_CHECK(the_range_of_any_inner_address_is_the_allocation) {
  const WithContext with;
  CUdeviceptr p = 0, base = 0;
  std::size_t size = 0;
  EXPECT_OK(cuMemAlloc_v2(&p, 5 * kMiB));
  EXPECT_OK(cuMemGetAddressRange_v2(&base, &size, p + 3 * kMiB + 1));
  EXPECT_SAME(base, p);
  EXPECT_SAME(size, 5 * kMiB);
  EXPECT_OK(cuMemFree_v2(p));
  EXPECT_CODE(cuMemGetAddressRange_v2(&base, &size, p), CUDA_ERROR_NOT_FOUND);
}

DRIVER_CHECK(wrong_arguments_are_refused) {
  const WithContext with;
  CUdeviceptr p = 0;
  std::size_t pitch = 0;
  EXPECT_CODE(cuMemAlloc_v2(&p, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemAlloc_v2(nullptr, kMiB), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemAllocPitch_v2(&p, &pitch, 100, 10, 3), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(cuMemAlloc_v2(&p, kMiB));
  EXPECT_CODE(cuMemFree_v2(p + 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(cuMemFree_v2(p));
  EXPECT_CODE(cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
}

DRIVER_CHECK(more_than_the_gpu_has_is_out_of_memory_and_nothing_else_changes) {
  const WithContext with;
  const std::size_t before = free_bytes();
  std::size_t total = 0;
  CUdeviceptr p = 0;
  EXPECT_OK(cuDeviceTotalMem_v2(&total, 0));
  EXPECT_CODE(cuMemAlloc_v2(&p, total + kMiB), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_SAME(free_bytes(), before);
  EXPECT_OK(cuMemAlloc_v2(&p, kMiB));
  EXPECT_OK(cuMemFree_v2(p));
}

DRIVER_CHECK(pitched_rows_are_aligned_and_wide_enough) {
  const WithContext with;
  CUdeviceptr p = 0;
  std::size_t pitch = 0;
  EXPECT_OK(cuMemAllocPitch_v2(&p, &pitch, 1000, 37, 4));
  EXPECT_TRUE(pitch >= 1000 && pitch % 256 == 0);
  EXPECT_OK(cuMemsetD8_v2(p, 7, pitch * 37));
  EXPECT_OK(cuMemFree_v2(p));
}

DRIVER_CHECK(managed_memory_is_seen_by_host_and_device) {
  WithContext with;
  CUdeviceptr p = 0;
  EXPECT_OK(cuMemAllocManaged(&p, kMiB, CU_MEM_ATTACH_GLOBAL));
  auto* words = reinterpret_cast<std::uint32_t*>(p);
  std::fill_n(words, kMiB / 4, 5U);
  std::uint32_t value = 3;
  std::uint64_t count = kMiB / 4;
  void* arguments[] = {&p, &value, &count};
  EXPECT_OK(launch(with.kernel("add_u32"), nullptr, arguments));
  EXPECT_OK(cuCtxSynchronize());
  EXPECT_SAME(words[0], 8U);
  EXPECT_SAME(words[kMiB / 4 - 1], 8U);
  unsigned char managed = 0;
  EXPECT_OK(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p));
  EXPECT_SAME(static_cast<int>(managed), 1);
  EXPECT_OK(cuMemFree_v2(p));
}

DRIVER_CHECK(host_memory_has_a_device_address_and_is_known) {
  const WithContext with;
  void* host = nullptr;
  CUdeviceptr p = 0;
  unsigned type = 0;
  EXPECT_OK(cuMemHostAlloc(&host, kMiB, CU_MEMHOSTALLOC_DEVICEMAP));
  std::memset(host, 0, kMiB);
  EXPECT_OK(cuMemHostGetDevicePointer_v2(&p, host, 0));
  EXPECT_OK(cuMemsetD32_v2(p, 0x01020304, 16));
  EXPECT_OK(cuCtxSynchronize());
  EXPECT_SAME(*static_cast<std::uint32_t*>(host), 0x01020304U);
  EXPECT_OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
  EXPECT_SAME(type, static_cast<unsigned>(CU_MEMORYTYPE_HOST));
  EXPECT_OK(cuMemFreeHost(host));
}

DRIVER_CHECK(memory_is_registered_once) {
  const WithContext with;
  void* memory = std::aligned_alloc(4096, kMiB);
  EXPECT_OK(cuMemHostRegister_v2(memory, kMiB, 0));
  EXPECT_CODE(cuMemHostRegister_v2(memory, kMiB, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  EXPECT_OK(cuMemHostUnregister(memory));
  EXPECT_CODE(cuMemHostUnregister(memory), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  std::free(memory);
}

DRIVER_CHECK(destroying_a_context_frees_what_is_in_it) {
  const WithContext with;
  const std::size_t before = free_bytes();
  CUcontext second = nullptr;
  CUdeviceptr p = 0;
  EXPECT_OK(cuCtxCreate_v2(&second, 0, 0));
  EXPECT_OK(cuMemAlloc_v2(&p, 64 * kMiB));
  EXPECT_TRUE(free_bytes() + 64 * kMiB <= before);
  EXPECT_OK(cuCtxDestroy_v2(second));
  EXPECT_SAME(free_bytes(), before);
}

DRIVER_CHECK(unknown_addresses_have_no_attributes) {
  const WithContext with;
  int local = 0;
  unsigned type = 0;
  const auto address = reinterpret_cast<CUdeviceptr>(&local);
  EXPECT_CODE(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address),
              CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr p = 0;
  int ordinal = -1;
  EXPECT_OK(cuMemAlloc_v2(&p, kMiB));
  EXPECT_OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p + 100));
  EXPECT_SAME(type, static_cast<unsigned>(CU_MEMORYTYPE_DEVICE));
  EXPECT_OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p));
  EXPECT_SAME(ordinal, 0);
  EXPECT_OK(cuMemFree_v2(p));
}
