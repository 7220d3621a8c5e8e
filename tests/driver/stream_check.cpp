// Streams, events, kernels and host functions: order and waiting.
#include "tests/driver/api.h"

#include <atomic>
#include <thread>
#include <vector>

namespace {
constexpr std::size_t kMiB = std::size_t{1} << 20;
}

DRIVER_CHECK(kernels_compute_what_their_names_say) {
  WithContext with;
  constexpr std::uint64_t kWords = 100'003;
  CUdeviceptr a = 0, b = 0, sum = 0;
  EXPECT_OK(cuMemAlloc_v2(&a, kWords * 4));
  EXPECT_OK(cuMemAlloc_v2(&b, kWords * 4));
  std::vector<float> x(kWords), y(kWords), z(kWords);
  for (std::size_t i = 0; i < kWords; ++i) {
    x[i] = static_cast<float>(i);
    y[i] = 0.5F;
  }
  EXPECT_OK(cuMemcpyHtoD_v2(a, x.data(), kWords * 4));
  EXPECT_OK(cuMemcpyHtoD_v2(b, y.data(), kWords * 4));
  std::uint64_t count = kWords;
  void* add[] = {&a, &b, &b, &count};
  EXPECT_OK(launch(with.kernel("add_f32"), nullptr, add));
  EXPECT_OK(cuMemcpyDtoH_v2(z.data(), b, kWords * 4));
  EXPECT_TRUE(z[0] == 0.5F && z[kWords - 1] == static_cast<float>(kWords - 1) + 0.5F);

  std::uint32_t seven = 7;
  void* fill[] = {&a, &seven, &count};
  EXPECT_OK(launch(with.kernel("fill_u32"), nullptr, fill));
  EXPECT_OK(cuMemAlloc_v2(&sum, 8));
  EXPECT_OK(cuMemsetD8_v2(sum, 0, 8));
  std::uint64_t words = kWords / 2, want = 0, got = 0;
  void* check[] = {&a, &words, &sum};
  EXPECT_OK(launch(with.kernel("checksum_u64"), nullptr, check));
  for (std::uint64_t i = 0; i < words; ++i) want += (0x0000000700000007ULL + i) * (2 * i + 1);
  EXPECT_OK(cuMemcpyDtoH_v2(&got, sum, 8));
  EXPECT_SAME(got, want);
  EXPECT_OK(cuMemFree_v2(a));
  EXPECT_OK(cuMemFree_v2(b));
  EXPECT_OK(cuMemFree_v2(sum));
}

DRIVER_CHECK(an_event_of_a_context_stands_for_the_work_of_all_its_streams) {
  WithContext with;
  const auto record = function<CUresult(CUcontext, CUevent)>("cuCtxRecordEvent");
  const auto wait = function<CUresult(CUcontext, CUevent)>("cuCtxWaitEvent");
  if (record == nullptr || wait == nullptr) return skip_check("the driver is older than CUDA 12.5");
  CUstream first = nullptr, second = nullptr;
  CUevent event = nullptr;
  EXPECT_OK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  const CUfunction kernel = with.kernel("spin_us");
  EXPECT_OK(spin(kernel, first, 1));
  EXPECT_OK(spin(kernel, second, 300'000));
  EXPECT_OK(record(with.context(), event));
  EXPECT_CODE(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  EXPECT_OK(cuEventSynchronize(event));
  EXPECT_OK(cuStreamQuery(first));
  EXPECT_OK(cuStreamQuery(second));

  EXPECT_OK(spin(kernel, second, 300'000));
  EXPECT_OK(cuEventRecord(event, second));
  EXPECT_OK(wait(with.context(), event));
  EXPECT_OK(spin(kernel, first, 1));
  EXPECT_CODE(cuStreamQuery(first), CUDA_ERROR_NOT_READY);
  EXPECT_OK(cuStreamSynchronize(first));
  EXPECT_OK(cuEventQuery(event));
  EXPECT_OK(cuEventDestroy_v2(event));
  EXPECT_OK(cuStreamDestroy_v2(first));
  EXPECT_OK(cuStreamDestroy_v2(second));
}

DRIVER_CHECK(a_launch_returns_before_the_kernel_ends) {
  WithContext with;
  CUstream stream = nullptr;
  EXPECT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  const CUfunction kernel = with.kernel("spin_us");
  EXPECT_OK(spin(kernel, stream, 1));
  EXPECT_OK(cuStreamSynchronize(stream));
  EXPECT_OK(spin(kernel, stream, 800'000));
  EXPECT_CODE(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  EXPECT_OK(cuStreamSynchronize(stream));
  EXPECT_OK(cuStreamQuery(stream));
  EXPECT_OK(cuStreamDestroy_v2(stream));
}

DRIVER_CHECK(work_of_one_stream_runs_in_order) {
  WithContext with;
  CUstream stream = nullptr;
  CUdeviceptr p = 0;
  EXPECT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(cuMemAlloc_v2(&p, kMiB));
  std::uint64_t count = kMiB / 4;
  const CUfunction add = with.kernel("add_u32");
  EXPECT_OK(spin(with.kernel("spin_us"), stream, 5000));
  EXPECT_OK(cuMemsetD32Async(p, 0, kMiB / 4, stream));
  for (std::uint32_t i = 1; i <= 20; ++i) {
    void* arguments[] = {&p, &i, &count};
    EXPECT_OK(launch(add, stream, arguments));
  }
  EXPECT_OK(cuStreamSynchronize(stream));
  std::uint32_t out = 0;
  EXPECT_OK(cuMemcpyDtoH_v2(&out, p + kMiB - 4, 4));
  EXPECT_SAME(out, 210U);
  EXPECT_OK(cuMemFree_v2(p));
  EXPECT_OK(cuStreamDestroy_v2(stream));
}

DRIVER_CHECK(the_legacy_stream_waits_for_blocking_streams_only) {
  WithContext with;
  CUstream blocking = nullptr, apart = nullptr;
  CUevent event = nullptr;
  const CUfunction kernel = with.kernel("spin_us");
  EXPECT_OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  EXPECT_OK(cuStreamCreate(&apart, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  EXPECT_OK(spin(kernel, apart, 800'000));
  EXPECT_OK(cuEventRecord(event, nullptr));
  EXPECT_OK(cuEventSynchronize(event));
  EXPECT_CODE(cuStreamQuery(apart), CUDA_ERROR_NOT_READY);
  EXPECT_OK(cuStreamSynchronize(apart));
  EXPECT_OK(spin(kernel, blocking, 50'000));
  EXPECT_OK(cuEventRecord(event, nullptr));
  EXPECT_OK(cuEventSynchronize(event));
  EXPECT_OK(cuStreamQuery(blocking));
  EXPECT_OK(cuEventDestroy_v2(event));
  EXPECT_OK(cuStreamDestroy_v2(blocking));
  EXPECT_OK(cuStreamDestroy_v2(apart));
}

DRIVER_CHECK(a_stream_waits_for_an_event_of_another) {
  WithContext with;
  CUstream first = nullptr, second = nullptr;
  CUevent event = nullptr;
  CUdeviceptr p = 0;
  EXPECT_OK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(cuEventCreate(&event, 0));
  EXPECT_OK(cuMemAlloc_v2(&p, 4096));
  EXPECT_OK(spin(with.kernel("spin_us"), first, 30'000));
  EXPECT_OK(cuMemsetD32Async(p, 1, 1024, first));
  EXPECT_OK(cuEventRecord(event, first));
  EXPECT_OK(cuStreamWaitEvent(second, event, 0));
  EXPECT_OK(cuMemsetD32Async(p, 2, 512, second));
  EXPECT_OK(cuStreamSynchronize(second));
  std::uint32_t words[1024];
  EXPECT_OK(cuMemcpyDtoH_v2(words, p, 4096));
  EXPECT_SAME(words[0], 2U);
  EXPECT_SAME(words[1023], 1U);
  EXPECT_OK(cuMemFree_v2(p));
  EXPECT_OK(cuEventDestroy_v2(event));
  EXPECT_OK(cuStreamDestroy_v2(first));
  EXPECT_OK(cuStreamDestroy_v2(second));
}

DRIVER_CHECK(events_measure_the_time_between_them) {
  WithContext with;
  CUevent start = nullptr, end = nullptr, untimed = nullptr;
  float milliseconds = 0;
  EXPECT_OK(cuEventCreate(&start, 0));
  EXPECT_OK(cuEventCreate(&end, 0));
  EXPECT_OK(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
  const CUfunction kernel = with.kernel("spin_us");
  EXPECT_OK(spin(kernel, nullptr, 1));
  EXPECT_OK(cuEventRecord(start, nullptr));
  EXPECT_OK(spin(kernel, nullptr, 20'000));
  EXPECT_OK(cuEventRecord(end, nullptr));
  EXPECT_OK(cuEventRecord(untimed, nullptr));
  EXPECT_OK(cuEventSynchronize(end));
  EXPECT_OK(cuEventElapsedTime(&milliseconds, start, end));
  EXPECT_TRUE(milliseconds >= 19.0F);
  EXPECT_CODE(cuEventElapsedTime(&milliseconds, start, untimed), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_OK(cuEventDestroy_v2(start));
  EXPECT_OK(cuEventDestroy_v2(end));
  EXPECT_OK(cuEventDestroy_v2(untimed));
}

DRIVER_CHECK(an_event_never_recorded_is_complete) {
  const WithContext with;
  CUevent event = nullptr;
  EXPECT_OK(cuEventCreate(&event, 0));
  EXPECT_OK(cuEventQuery(event));
  EXPECT_OK(cuEventSynchronize(event));
  EXPECT_OK(cuEventDestroy_v2(event));
}

DRIVER_CHECK(a_host_function_runs_in_order_and_may_not_call_the_driver) {
  WithContext with;
  struct State {
    std::atomic<int> calls{0};
    std::atomic<int> code{-1};
  } state;
  CUstream stream = nullptr;
  EXPECT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(spin(with.kernel("spin_us"), stream, 5000));
  EXPECT_OK(cuLaunchHostFunc(
      stream,
      [](void* data) {
        auto* inside = static_cast<State*>(data);
        CUdeviceptr p = 0;
        inside->code = static_cast<int>(cuMemAlloc_v2(&p, 4096));
        ++inside->calls;
      },
      &state));
  EXPECT_OK(cuStreamSynchronize(stream));
  EXPECT_SAME(state.calls.load(), 1);
  EXPECT_SAME(state.code.load(), static_cast<int>(CUDA_ERROR_NOT_PERMITTED));
  EXPECT_OK(cuStreamDestroy_v2(stream));
}

DRIVER_CHECK(freeing_waits_for_the_work_that_uses_the_memory) {
  WithContext with;
  CUstream stream = nullptr;
  CUdeviceptr p = 0;
  EXPECT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(cuMemAlloc_v2(&p, 16 * kMiB));
  EXPECT_OK(spin(with.kernel("spin_us"), stream, 50'000));
  EXPECT_OK(cuMemsetD32Async(p, 3, 4 * kMiB, stream));
  EXPECT_OK(cuMemFree_v2(p));
  EXPECT_OK(cuStreamQuery(stream));
  EXPECT_OK(cuStreamSynchronize(stream));
  EXPECT_OK(cuStreamDestroy_v2(stream));
}

DRIVER_CHECK(the_work_of_a_destroyed_stream_is_still_done_and_waited_for) {
  WithContext with;
  CUstream stream = nullptr;
  CUdeviceptr p = 0;
  std::uint32_t word = 0;
  EXPECT_OK(cuMemAlloc_v2(&p, 4096));
  EXPECT_OK(cuMemsetD32_v2(p, 1, 1024));
  EXPECT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(spin(with.kernel("spin_us"), stream, 50'000));
  EXPECT_OK(cuMemsetD32Async(p, 2, 1024, stream));
  EXPECT_OK(cuStreamDestroy_v2(stream));
  EXPECT_OK(cuCtxSynchronize());
  EXPECT_OK(cuMemcpyDtoH_v2(&word, p, 4));
  EXPECT_SAME(word, 2U);
  EXPECT_OK(cuMemFree_v2(p));
}

DRIVER_CHECK(wrong_launches_are_refused) {
  WithContext with;
  const CUfunction kernel = with.kernel("spin_us");
  std::uint64_t none = 0;
  void* arguments[] = {&none};
  EXPECT_CODE(cuLaunchKernel(kernel, 0, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr),
              CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuLaunchKernel(kernel, 1, 1, 1, 2048, 1, 1, 0, nullptr, arguments, nullptr),
              CUDA_ERROR_INVALID_VALUE);
  EXPECT_TRUE(with.kernel("no_such_kernel") == nullptr);
  CUmodule module = nullptr;
  EXPECT_TRUE(cuModuleLoadData(&module, "this is no image at all") != CUDA_SUCCESS);
}

DRIVER_CHECK(threads_may_use_one_context_at_once) {
  WithContext with;
  std::atomic<int> errors{0};
  const CUfunction add = with.kernel("add_u32");
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      if (cuCtxSetCurrent(with.context()) != CUDA_SUCCESS) ++errors;
      for (int round = 0; round < 40; ++round) {
        CUdeviceptr p = 0;
        std::uint32_t one = 1, out = 0;
        std::uint64_t count = 1024;
        void* arguments[] = {&p, &one, &count};
        const bool good = cuMemAlloc_v2(&p, 4096) == CUDA_SUCCESS &&
                          cuMemsetD32_v2(p, 41, 1024) == CUDA_SUCCESS &&
                          launch(add, nullptr, arguments) == CUDA_SUCCESS &&
                          cuMemcpyDtoH_v2(&out, p + 4092, 4) == CUDA_SUCCESS && out == 42 &&
                          cuMemFree_v2(p) == CUDA_SUCCESS;
        if (!good) ++errors;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_SAME(errors.load(), 0);
}
