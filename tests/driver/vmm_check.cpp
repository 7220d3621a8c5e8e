// Virtual memory management: mappings, and content that stays with the memory when mappings change.
#include "tests/driver/api.h"
#include "tests/driver/device_memory.h"

#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace {

std::size_t free_bytes() {
  std::size_t free = 0, total = 0;
  (void)cuMemGetInfo_v2(&free, &total);
  return free;
}

}  // namespace

DRIVER_CHECK(bytes_follow_the_memory_when_it_is_mapped_elsewhere) {
  const WithContext with;
  const auto prop = device_memory();
  std::size_t unit = 0;
  EXPECT_OK(cuMemGetAllocationGranularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CUdeviceptr range = 0;
  CUmemGenericAllocationHandle one = 0, two = 0;
  EXPECT_OK(cuMemAddressReserve(&range, 4 * unit, 0, 0, 0));
  EXPECT_OK(cuMemCreate(&one, unit, &prop, 0));
  EXPECT_OK(cuMemCreate(&two, unit, &prop, 0));
  EXPECT_OK(cuMemMap(range, unit, 0, one, 0));
  EXPECT_OK(cuMemMap(range + unit, unit, 0, two, 0));
  EXPECT_OK(cuMemSetAccess(range, 2 * unit, &kReadWrite, 1));
  EXPECT_OK(cuMemsetD32_v2(range, 0x11111111, unit / 4));
  EXPECT_OK(cuMemsetD32_v2(range + unit, 0x22222222, unit / 4));
  EXPECT_OK(cuMemUnmap(range, unit));
  EXPECT_OK(cuMemUnmap(range + unit, unit));
  EXPECT_OK(cuMemMap(range + 3 * unit, unit, 0, one, 0));
  EXPECT_OK(cuMemMap(range + 2 * unit, unit, 0, two, 0));
  EXPECT_OK(cuMemSetAccess(range + 2 * unit, 2 * unit, &kReadWrite, 1));
  std::vector<std::uint32_t> out(2 * unit / 4);
  EXPECT_OK(cuMemcpyDtoH_v2(out.data(), range + 2 * unit, 2 * unit));
  EXPECT_SAME(out.front(), 0x22222222U);
  EXPECT_SAME(out[unit / 4 - 1], 0x22222222U);
  EXPECT_SAME(out[unit / 4], 0x11111111U);
  EXPECT_SAME(out.back(), 0x11111111U);
  EXPECT_OK(cuMemUnmap(range + 2 * unit, 2 * unit));
  EXPECT_OK(cuMemRelease(one));
  EXPECT_OK(cuMemRelease(two));
  EXPECT_OK(cuMemAddressFree(range, 4 * unit));
}

DRIVER_CHECK(physical_memory_lives_until_neither_handle_nor_mapping_is_left) {
  const WithContext with;
  const auto prop = device_memory();
  constexpr std::size_t kSize = std::size_t{64} << 20;
  const std::size_t before = free_bytes();
  CUdeviceptr range = 0;
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_OK(cuMemAddressReserve(&range, kSize, 0, 0, 0));
  EXPECT_SAME(free_bytes(), before);
  EXPECT_OK(cuMemCreate(&handle, kSize, &prop, 0));
  EXPECT_SAME(before - free_bytes(), kSize);
  EXPECT_OK(cuMemMap(range, kSize, 0, handle, 0));
  EXPECT_OK(cuMemRelease(handle));
  EXPECT_SAME(before - free_bytes(), kSize);
  EXPECT_OK(cuMemUnmap(range, kSize));
  EXPECT_SAME(free_bytes(), before);
  EXPECT_OK(cuMemAddressFree(range, kSize));
}

DRIVER_CHECK(a_handle_retained_by_address_keeps_the_memory) {
  const WithContext with;
  const auto prop = device_memory();
  constexpr std::size_t kSize = std::size_t{4} << 20;
  const std::size_t before = free_bytes();
  CUdeviceptr range = 0;
  CUmemGenericAllocationHandle handle = 0, again = 0;
  EXPECT_OK(cuMemAddressReserve(&range, kSize, 0, 0, 0));
  EXPECT_OK(cuMemCreate(&handle, kSize, &prop, 0));
  EXPECT_OK(cuMemMap(range, kSize, 0, handle, 0));
  EXPECT_OK(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(range)));
  EXPECT_OK(cuMemRelease(handle));
  EXPECT_OK(cuMemUnmap(range, kSize));
  EXPECT_SAME(before - free_bytes(), kSize);
  EXPECT_OK(cuMemRelease(again));
  EXPECT_SAME(free_bytes(), before);
  EXPECT_OK(cuMemAddressFree(range, kSize));
}

DRIVER_CHECK(memory_without_access_cannot_be_copied) {
  const WithContext with;
  const auto prop = device_memory();
  constexpr std::size_t kSize = std::size_t{2} << 20;
  CUdeviceptr range = 0;
  CUmemGenericAllocationHandle handle = 0;
  std::vector<char> host(16);
  EXPECT_OK(cuMemAddressReserve(&range, kSize, 0, 0, 0));
  EXPECT_CODE(cuMemcpyHtoD_v2(range, host.data(), 16), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(cuMemCreate(&handle, kSize, &prop, 0));
  EXPECT_OK(cuMemMap(range, kSize, 0, handle, 0));
  EXPECT_CODE(cuMemcpyHtoD_v2(range, host.data(), 16), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(cuMemSetAccess(range, kSize, &kReadWrite, 1));
  EXPECT_OK(cuMemcpyHtoD_v2(range, host.data(), 16));
  EXPECT_OK(cuMemUnmap(range, kSize));
  EXPECT_OK(cuMemRelease(handle));
  EXPECT_OK(cuMemAddressFree(range, kSize));
}

DRIVER_CHECK(wrong_uses_of_virtual_memory_are_refused) {
  const WithContext with;
  const auto prop = device_memory();
  constexpr std::size_t kSize = std::size_t{2} << 20;
  CUdeviceptr range = 0;
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_CODE(cuMemCreate(&handle, kSize + 1, &prop, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemAddressReserve(&range, 0, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(cuMemAddressReserve(&range, kSize, 0, 0, 0));
  EXPECT_OK(cuMemCreate(&handle, kSize, &prop, 0));
  EXPECT_OK(cuMemMap(range, kSize, 0, handle, 0));
  EXPECT_CODE(cuMemMap(range, kSize, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemFree_v2(range), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(cuMemUnmap(range, kSize));
  EXPECT_OK(cuMemUnmap(range, kSize));  // again: nothing is left to unmap
  EXPECT_OK(cuMemRelease(handle));
  EXPECT_OK(cuMemAddressFree(range, kSize));
}

DRIVER_CHECK(memory_exported_as_a_descriptor_is_the_same_memory) {
  const WithContext with;
  const auto prop = device_memory(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  constexpr std::size_t kSize = std::size_t{8} << 20;
  const std::size_t before = free_bytes();
  CUdeviceptr range = 0;
  CUmemGenericAllocationHandle handle = 0, imported = 0;
  int fd = -1;
  EXPECT_OK(cuMemAddressReserve(&range, 2 * kSize, 0, 0, 0));
  EXPECT_OK(cuMemCreate(&handle, kSize, &prop, 0));
  EXPECT_OK(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  EXPECT_OK(cuMemImportFromShareableHandle(&imported,
                                           reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)),
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  EXPECT_SAME(before - free_bytes(), kSize);
  EXPECT_OK(cuMemMap(range, kSize, 0, handle, 0));
  EXPECT_OK(cuMemMap(range + kSize, kSize, 0, imported, 0));
  EXPECT_OK(cuMemSetAccess(range, 2 * kSize, &kReadWrite, 1));
  EXPECT_OK(cuMemsetD32_v2(range, 0x600df00d, kSize / 4));
  std::uint32_t word = 0;
  EXPECT_OK(cuMemcpyDtoH_v2(&word, range + 2 * kSize - 4, 4));
  EXPECT_SAME(word, 0x600df00dU);
  EXPECT_OK(cuMemUnmap(range, 2 * kSize));
  EXPECT_OK(cuMemRelease(handle));
  EXPECT_OK(cuMemRelease(imported));
  ::close(fd);
  EXPECT_SAME(free_bytes(), before);
  EXPECT_OK(cuMemAddressFree(range, 2 * kSize));
}

// The descriptor is an open file of its own and keeps the memory. The memory can be imported from
// it even when no process has a handle any more.
DRIVER_CHECK(memory_that_only_a_descriptor_keeps_stays) {
  const WithContext with;
  const auto prop = device_memory(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  constexpr std::size_t kSize = std::size_t{64} << 20;
  const std::size_t before = free_bytes();
  CUmemGenericAllocationHandle handle = 0;
  int fd = -1;
  EXPECT_OK(cuMemCreate(&handle, kSize, &prop, 0));
  EXPECT_OK(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  const int copy = ::dup(fd);
  EXPECT_OK(cuMemRelease(handle));
  ::close(fd);
  EXPECT_SAME(before - free_bytes(), kSize);
  EXPECT_OK(cuMemImportFromShareableHandle(
      &handle, reinterpret_cast<void*>(static_cast<std::intptr_t>(copy)),
      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  ::close(copy);
  EXPECT_SAME(before - free_bytes(), kSize);
  EXPECT_OK(cuMemRelease(handle));
  EXPECT_SAME(free_bytes(), before);
}

// A descriptor that is reopened by its path is another file, which the driver does not know.
DRIVER_CHECK(a_descriptor_is_not_opened_by_its_path) {
  const WithContext with;
  const auto prop = device_memory(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  CUmemGenericAllocationHandle handle = 0, imported = 0;
  int fd = -1;
  EXPECT_OK(cuMemCreate(&handle, std::size_t{2} << 20, &prop, 0));
  EXPECT_OK(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  const int other = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  EXPECT_TRUE(cuMemImportFromShareableHandle(
                  &imported, reinterpret_cast<void*>(static_cast<std::intptr_t>(other)),
                  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != CUDA_SUCCESS);
  ::close(other);
  ::close(fd);
  EXPECT_OK(cuMemRelease(handle));
}

// Each mapping is reported separately, even where two are adjacent.
DRIVER_CHECK(what_is_told_of_an_address_is_of_its_mapping) {
  const WithContext with;
  const auto prop = device_memory(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  constexpr std::size_t kSize = std::size_t{4} << 20;
  CUdeviceptr range = 0, base = 0;
  CUmemGenericAllocationHandle one = 0, two = 0;
  std::size_t size = 0;
  EXPECT_OK(cuMemAddressReserve(&range, 3 * kSize, 0, 0, 0));
  EXPECT_OK(cuMemCreate(&one, kSize, &prop, 0));
  EXPECT_OK(cuMemCreate(&two, 2 * kSize, &prop, 0));
  EXPECT_OK(cuMemMap(range, kSize, 0, one, 0));
  EXPECT_OK(cuMemMap(range + kSize, 2 * kSize, 0, two, 0));
  EXPECT_OK(cuMemSetAccess(range, 3 * kSize, &kReadWrite, 1));
  EXPECT_OK(cuMemGetAddressRange_v2(&base, &size, range + 100));
  EXPECT_SAME(base, range);
  EXPECT_SAME(size, kSize);
  EXPECT_OK(cuMemGetAddressRange_v2(&base, &size, range + 3 * kSize - 1));
  EXPECT_SAME(base, range + kSize);
  EXPECT_SAME(size, 2 * kSize);
  unsigned type = 0;
  int device = -1;
  unsigned char legacy_ipc = 7;
  EXPECT_OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, range + 100));
  EXPECT_OK(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, range + 100));
  EXPECT_OK(cuPointerGetAttribute(&legacy_ipc, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
                                  range + 100));
  // 580.159 answers 0 as the memory type here, but still reports the device.
  EXPECT_TRUE(type == CU_MEMORYTYPE_DEVICE || (!is_simulated() && type == 0));
  EXPECT_SAME(device, 0);
  EXPECT_SAME(static_cast<int>(legacy_ipc), 0);
  unsigned long long access = 0;
  EXPECT_OK(cuMemGetAccess(&access, &kReadWrite.location, range + kSize));
  EXPECT_SAME(access, static_cast<unsigned long long>(CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  CUmemAllocationProp told = {};
  EXPECT_OK(cuMemGetAllocationPropertiesFromHandle(&told, two));
  EXPECT_SAME(static_cast<int>(told.location.type), static_cast<int>(prop.location.type));
  EXPECT_SAME(static_cast<int>(told.requestedHandleTypes),
              static_cast<int>(prop.requestedHandleTypes));
  EXPECT_OK(cuMemUnmap(range, 3 * kSize));
  EXPECT_OK(cuMemRelease(one));
  EXPECT_OK(cuMemRelease(two));
  EXPECT_OK(cuMemAddressFree(range, 3 * kSize));
}

DRIVER_CHECK(mapped_memory_is_of_no_context) {
  const WithContext with;
  const auto prop = device_memory();
  constexpr std::size_t kSize = std::size_t{2} << 20;
  CUdeviceptr range = 0;
  CUmemGenericAllocationHandle handle = 0;
  CUcontext context = with.context();
  EXPECT_OK(cuMemAddressReserve(&range, kSize, 0, 0, 0));
  EXPECT_OK(cuMemCreate(&handle, kSize, &prop, 0));
  EXPECT_OK(cuMemMap(range, kSize, 0, handle, 0));
  EXPECT_OK(cuMemSetAccess(range, kSize, &kReadWrite, 1));
  EXPECT_OK(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, range));
  EXPECT_TRUE(context == nullptr);
  EXPECT_OK(cuMemUnmap(range, kSize));
  EXPECT_OK(cuMemRelease(handle));
  EXPECT_OK(cuMemAddressFree(range, kSize));
}

DRIVER_CHECK(addresses_that_something_is_mapped_at_are_not_given_back_and_no_part_is_unmapped) {
  const WithContext with;
  const auto prop = device_memory();
  constexpr std::size_t kSize = std::size_t{4} << 20;
  CUdeviceptr range = 0;
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_OK(cuMemAddressReserve(&range, 2 * kSize, 0, 0, 0));
  EXPECT_OK(cuMemCreate(&handle, kSize, &prop, 0));
  EXPECT_OK(cuMemMap(range, kSize, 0, handle, 0));
  EXPECT_TRUE(cuMemAddressFree(range, 2 * kSize) != CUDA_SUCCESS);
  EXPECT_TRUE(cuMemUnmap(range, kSize / 2) != CUDA_SUCCESS);
  EXPECT_OK(cuMemUnmap(range, kSize));
  EXPECT_OK(cuMemRelease(handle));
  EXPECT_OK(cuMemAddressFree(range, 2 * kSize));
}
