// Copies and memsets in every shape, compared with the same operation on the host.
#include "tests/driver/api.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace {

using Bytes = std::vector<unsigned char>;

Bytes pattern(std::size_t size, unsigned seed) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<unsigned char>((i * 2654435761U + seed) >> 7);
  }
  return bytes;
}

}  // namespace

DRIVER_CHECK(a_copy_between_ranges_moves_exactly_those_bytes) {
  const WithContext with;
  Bytes in = pattern(70000, 1), out(70000);
  CUdeviceptr a = 0, b = 0;
  EXPECT_OK(cuMemAlloc_v2(&a, in.size()));
  EXPECT_OK(cuMemAlloc_v2(&b, in.size()));
  EXPECT_OK(cuMemcpyHtoD_v2(a, in.data(), in.size()));
  EXPECT_OK(cuMemsetD8_v2(b, 0xee, in.size()));
  EXPECT_OK(cuMemcpyDtoD_v2(b + 13, a + 5, 1001));
  EXPECT_OK(cuMemcpyDtoH_v2(out.data(), b, out.size()));
  Bytes want(70000, 0xee);
  std::copy(in.begin() + 5, in.begin() + 1006, want.begin() + 13);
  EXPECT_TRUE(out == want);
  EXPECT_OK(cuMemFree_v2(a));
  EXPECT_OK(cuMemFree_v2(b));
}

DRIVER_CHECK(a_copy_beyond_an_allocation_is_refused) {
  const WithContext with;
  Bytes in(8 << 20);
  CUdeviceptr p = 0;
  EXPECT_OK(cuMemAlloc_v2(&p, 4 << 20));
  EXPECT_OK(cuMemFree_v2(p));
  EXPECT_CODE(cuMemcpyHtoD_v2(p, in.data(), 16), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemcpyHtoD_v2(0, in.data(), 16), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(cuMemcpyHtoD_v2(0, in.data(), 0));
}

DRIVER_CHECK(cuMemcpy_finds_the_direction_by_the_addresses) {
  const WithContext with;
  Bytes in = pattern(5000, 2), out(5000);
  CUdeviceptr p = 0;
  EXPECT_OK(cuMemAlloc_v2(&p, 5000));
  EXPECT_OK(cuMemcpy(p, reinterpret_cast<CUdeviceptr>(in.data()), in.size()));
  EXPECT_OK(cuMemcpy(reinterpret_cast<CUdeviceptr>(out.data()), p, out.size()));
  EXPECT_TRUE(in == out);
  EXPECT_OK(cuMemFree_v2(p));
}

DRIVER_CHECK(an_asynchronous_copy_has_read_pageable_memory_when_it_returns) {
  WithContext with;
  Bytes in = pattern(4096, 3), out(4096);
  const Bytes want = in;
  CUdeviceptr p = 0;
  CUstream stream = nullptr;
  EXPECT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(cuMemAlloc_v2(&p, 4096));
  EXPECT_OK(spin(with.kernel("spin_us"), stream, 20000));
  EXPECT_OK(cuMemcpyHtoDAsync_v2(p, in.data(), in.size(), stream));
  std::fill(in.begin(), in.end(), static_cast<unsigned char>(0));
  EXPECT_OK(cuStreamSynchronize(stream));
  EXPECT_OK(cuMemcpyDtoH_v2(out.data(), p, out.size()));
  EXPECT_TRUE(out == want);
  EXPECT_OK(cuStreamDestroy_v2(stream));
  EXPECT_OK(cuMemFree_v2(p));
}

DRIVER_CHECK(sets_of_one_two_and_four_bytes_fill_exactly) {
  const WithContext with;
  Bytes out(1024), want(1024, 0x11);
  CUdeviceptr p = 0;
  EXPECT_OK(cuMemAlloc_v2(&p, 1024));
  EXPECT_OK(cuMemsetD8_v2(p, 0x11, 1024));
  EXPECT_OK(cuMemsetD8_v2(p + 1, 0x22, 3));
  EXPECT_OK(cuMemsetD16_v2(p + 100, 0x3344, 5));
  EXPECT_OK(cuMemsetD32_v2(p + 200, 0x55667788, 7));
  std::fill_n(want.begin() + 1, 3, static_cast<unsigned char>(0x22));
  for (int i = 0; i < 5; ++i)
    std::memcpy(&want[100 + 2 * static_cast<std::size_t>(i)], "\x44\x33", 2);
  for (int i = 0; i < 7; ++i) {
    std::memcpy(&want[200 + 4 * static_cast<std::size_t>(i)], "\x88\x77\x66\x55", 4);
  }
  EXPECT_OK(cuMemcpyDtoH_v2(out.data(), p, out.size()));
  EXPECT_TRUE(out == want);
  EXPECT_CODE(cuMemsetD32_v2(p + 2, 1, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemsetD16_v2(p + 1, 1, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(cuMemFree_v2(p));
}

DRIVER_CHECK(two_dimensional_sets_leave_the_rest_of_each_row) {
  const WithContext with;
  constexpr std::size_t kPitch = 512, kRows = 9;
  Bytes out(kPitch * kRows), want(kPitch * kRows, 0xaa);
  CUdeviceptr p = 0;
  EXPECT_OK(cuMemAlloc_v2(&p, out.size()));
  EXPECT_OK(cuMemsetD8_v2(p, 0xaa, out.size()));
  EXPECT_OK(cuMemsetD2D8_v2(p + 3, kPitch, 0x01, 10, kRows));
  EXPECT_OK(cuMemsetD2D16_v2(p + 100, kPitch, 0x0202, 6, kRows - 1));
  EXPECT_OK(cuMemsetD2D32_v2(p + 200, kPitch, 0x03030303, 5, kRows - 2));
  for (std::size_t row = 0; row < kRows; ++row) {
    unsigned char* line = &want[row * kPitch];
    std::fill_n(line + 3, 10, static_cast<unsigned char>(1));
    if (row + 1 < kRows) std::fill_n(line + 100, 12, static_cast<unsigned char>(2));
    if (row + 2 < kRows) std::fill_n(line + 200, 20, static_cast<unsigned char>(3));
  }
  EXPECT_OK(cuMemcpyDtoH_v2(out.data(), p, out.size()));
  EXPECT_TRUE(out == want);
  EXPECT_OK(cuMemFree_v2(p));
}

DRIVER_CHECK(a_two_dimensional_copy_takes_offsets_and_pitches) {
  const WithContext with;
  constexpr std::size_t kHostPitch = 100, kRows = 20;
  Bytes in = pattern(kHostPitch * kRows, 4), out(kHostPitch * kRows, 0), want(out);
  CUdeviceptr p = 0;
  std::size_t pitch = 0;
  EXPECT_OK(cuMemAllocPitch_v2(&p, &pitch, 80, kRows, 4));
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = in.data();
  copy.srcPitch = kHostPitch;
  copy.srcXInBytes = 7;
  copy.srcY = 2;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = p;
  copy.dstPitch = pitch;
  copy.dstXInBytes = 3;
  copy.dstY = 1;
  copy.WidthInBytes = 50;
  copy.Height = 12;
  EXPECT_OK(cuMemcpy2D_v2(&copy));
  CUDA_MEMCPY2D back = {};
  back.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  back.srcDevice = p;
  back.srcPitch = pitch;
  back.srcXInBytes = 3;
  back.srcY = 1;
  back.dstMemoryType = CU_MEMORYTYPE_HOST;
  back.dstHost = out.data();
  back.dstPitch = kHostPitch;
  back.dstXInBytes = 11;
  back.WidthInBytes = 50;
  back.Height = 12;
  EXPECT_OK(cuMemcpy2D_v2(&back));
  for (std::size_t row = 0; row < 12; ++row) {
    std::copy_n(&in[(row + 2) * kHostPitch + 7], 50, &want[row * kHostPitch + 11]);
  }
  EXPECT_TRUE(out == want);
  back.dstPitch = 20;
  EXPECT_CODE(cuMemcpy2D_v2(&back), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(cuMemFree_v2(p));
}

DRIVER_CHECK(a_three_dimensional_copy_takes_layers) {
  const WithContext with;
  constexpr std::size_t kPitch = 64, kHeight = 10, kDepth = 6;
  Bytes in = pattern(kPitch * kHeight * kDepth, 5), out(in.size(), 0), want(out);
  CUdeviceptr p = 0;
  EXPECT_OK(cuMemAlloc_v2(&p, in.size()));
  EXPECT_OK(cuMemcpyHtoD_v2(p, in.data(), in.size()));
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = p;
  copy.srcPitch = kPitch;
  copy.srcHeight = kHeight;
  copy.srcXInBytes = 4;
  copy.srcY = 1;
  copy.srcZ = 2;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = out.data();
  copy.dstPitch = kPitch;
  copy.dstHeight = kHeight;
  copy.dstZ = 1;
  copy.WidthInBytes = 40;
  copy.Height = 7;
  copy.Depth = 3;
  EXPECT_OK(cuMemcpy3D_v2(&copy));
  for (std::size_t z = 0; z < 3; ++z) {
    for (std::size_t y = 0; y < 7; ++y) {
      std::copy_n(&in[((z + 2) * kHeight + y + 1) * kPitch + 4], 40,
                  &want[((z + 1) * kHeight + y) * kPitch]);
    }
  }
  EXPECT_TRUE(out == want);
  EXPECT_OK(cuMemFree_v2(p));
}

DRIVER_CHECK(arrays_take_and_give_bytes) {
  const WithContext with;
  const CUDA_ARRAY_DESCRIPTOR shape = {256, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1};
  Bytes in = pattern(1024, 6), out(1024);
  CUarray a = nullptr, b = nullptr;
  CUdeviceptr p = 0;
  EXPECT_OK(cuArrayCreate_v2(&a, &shape));
  EXPECT_OK(cuArrayCreate_v2(&b, &shape));
  EXPECT_OK(cuMemAlloc_v2(&p, 1024));
  EXPECT_OK(cuMemcpyHtoA_v2(a, 0, in.data(), 1024));
  EXPECT_OK(cuMemcpyAtoA_v2(b, 0, a, 0, 1024));
  EXPECT_OK(cuMemcpyAtoD_v2(p, b, 0, 1024));
  EXPECT_OK(cuMemcpyDtoA_v2(a, 512, p, 512));
  EXPECT_OK(cuMemcpyAtoH_v2(out.data(), a, 0, 1024));
  Bytes want = in;
  std::copy_n(in.begin(), 512, want.begin() + 512);
  EXPECT_TRUE(out == want);
  CUDA_ARRAY_DESCRIPTOR got = {};
  EXPECT_OK(cuArrayGetDescriptor_v2(&got, a));
  EXPECT_SAME(got.Width, shape.Width);
  EXPECT_OK(cuArrayDestroy(a));
  EXPECT_OK(cuArrayDestroy(b));
  EXPECT_OK(cuMemFree_v2(p));
}
