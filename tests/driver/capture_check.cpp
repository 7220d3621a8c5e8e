// Calls that a program may make during a capture, captured or not, without invalidating the
// capture. A library between a program and the driver must not make such a call invalidate a
// capture. abi/captures.tsv lists the driver's behaviour for each call.
#include "tests/driver/api.h"

#include <atomic>
#include <functional>
#include <thread>

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kWords = kMiB / 4;
constexpr CUstreamCaptureMode kModes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL,
                                          CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                          CU_STREAM_CAPTURE_MODE_RELAXED};

CUresult run_on_a_thread(CUcontext context, const std::function<CUresult()>& body) {
  CUresult result = CUDA_SUCCESS;
  std::thread([&] {
    result = cuCtxSetCurrent(context);
    if (result == CUDA_SUCCESS) result = body();
  }).join();
  return result;
}

// Launches the captured graph; returns whether all of `p` then has `value`.
bool fills(CUgraph graph, CUstream stream, CUdeviceptr p, std::uint32_t value) {
  CUgraphExec exec = nullptr;
  std::uint32_t first = 0, last = 0;
  const bool done = cuMemsetD32Async(p, ~value, kWords, stream) == CUDA_SUCCESS &&
                    cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS &&
                    cuGraphLaunch(exec, stream) == CUDA_SUCCESS &&
                    cuStreamSynchronize(stream) == CUDA_SUCCESS &&
                    cuMemcpyDtoH_v2(&first, p, 4) == CUDA_SUCCESS &&
                    cuMemcpyDtoH_v2(&last, p + kMiB - 4, 4) == CUDA_SUCCESS;
  cuGraphExecDestroy(exec);
  cuGraphDestroy(graph);
  return done && first == value && last == value;
}

// Allocates from a pool and frees, so that the pool has memory to report.
CUresult use_a_pool(CUstream stream) {
  CUdeviceptr p = 0;
  CUresult result = cuMemAllocAsync(&p, kMiB, stream);
  if (result == CUDA_SUCCESS) result = cuMemFreeAsync(p, stream);
  return result == CUDA_SUCCESS ? cuStreamSynchronize(stream) : result;
}

// Captures a memory fill in each mode, and runs `body` during the capture on this thread and on
// another.
void expect_harmless(const std::function<CUresult()>& body) {
  const WithContext with;
  CUdeviceptr p = 0;
  CUstream stream = nullptr;
  EXPECT_OK(cuMemAlloc_v2(&p, kMiB));
  EXPECT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(use_a_pool(stream));
  std::uint32_t value = 1;
  for (const CUstreamCaptureMode mode : kModes) {
    CUgraph graph = nullptr;
    EXPECT_OK(cuStreamBeginCapture_v2(stream, mode));
    EXPECT_OK(cuMemsetD32Async(p, ++value, kWords / 2, stream));
    EXPECT_OK(body());
    EXPECT_OK(run_on_a_thread(with.context(), body));
    EXPECT_OK(cuMemsetD32Async(p + kMiB / 2, value, kWords / 2, stream));
    EXPECT_OK(cuStreamEndCapture(stream, &graph));
    EXPECT_TRUE(fills(graph, stream, p, value));
  }
  EXPECT_OK(cuStreamDestroy_v2(stream));
  EXPECT_OK(cuMemFree_v2(p));
}

}  // namespace

DRIVER_CHECK(how_much_memory_there_is_may_be_asked_during_a_capture) {
  expect_harmless([] {
    std::size_t free = 0, total = 0;
    return cuMemGetInfo_v2(&free, &total);
  });
}

DRIVER_CHECK(streams_and_events_come_and_go_during_a_capture) {
  expect_harmless([] {
    CUstream stream = nullptr;
    CUevent event = nullptr;
    CUresult result = cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    if (result == CUDA_SUCCESS) result = cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    if (result == CUDA_SUCCESS) result = cuEventRecord(event, stream);
    if (result == CUDA_SUCCESS) result = cuEventDestroy_v2(event);
    return result == CUDA_SUCCESS ? cuStreamDestroy_v2(stream) : result;
  });
}

DRIVER_CHECK(who_is_relaxed_allocates_and_frees_during_a_capture) {
  expect_harmless([] {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUdeviceptr p = 0, q = 0;
    CUstream stream = nullptr;
    CUresult result = cuThreadExchangeStreamCaptureMode(&mode);
    if (result == CUDA_SUCCESS) result = cuMemAlloc_v2(&p, 3 * kMiB);
    if (result == CUDA_SUCCESS) result = cuMemFree_v2(p);
    if (result == CUDA_SUCCESS) result = cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    if (result == CUDA_SUCCESS) result = cuMemAllocAsync(&q, kMiB, stream);
    if (result == CUDA_SUCCESS) result = cuMemFreeAsync(q, stream);
    if (result == CUDA_SUCCESS) result = cuStreamSynchronize(stream);
    if (result == CUDA_SUCCESS) result = cuStreamDestroy_v2(stream);
    cuThreadExchangeStreamCaptureMode(&mode);
    return result;
  });
}

// Before its capture ends, NVIDIA's sample graphMemoryNodes destroys a stream that has joined the
// capture.
DRIVER_CHECK(a_stream_that_joined_a_capture_may_be_destroyed_before_its_end) {
  const WithContext with;
  CUdeviceptr p = 0;
  CUstream stream = nullptr;
  EXPECT_OK(cuMemAlloc_v2(&p, kMiB));
  EXPECT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  std::uint32_t value = 1;
  for (const CUstreamCaptureMode mode : kModes) {
    CUstream joined = nullptr;
    CUevent fork = nullptr, join = nullptr;
    CUgraph graph = nullptr;
    EXPECT_OK(cuStreamBeginCapture_v2(stream, mode));
    EXPECT_OK(cuStreamCreate(&joined, CU_STREAM_NON_BLOCKING));
    EXPECT_OK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    EXPECT_OK(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
    EXPECT_OK(cuMemsetD32Async(p, ++value, kWords / 2, stream));
    EXPECT_OK(cuEventRecord(fork, stream));
    EXPECT_OK(cuStreamWaitEvent(joined, fork, 0));
    EXPECT_OK(cuMemsetD32Async(p + kMiB / 2, value, kWords / 2, joined));
    EXPECT_OK(cuEventRecord(join, joined));
    EXPECT_OK(cuStreamWaitEvent(stream, join, 0));
    EXPECT_OK(cuStreamDestroy_v2(joined));
    EXPECT_OK(cuEventDestroy_v2(fork));
    EXPECT_OK(cuEventDestroy_v2(join));
    EXPECT_OK(cuStreamEndCapture(stream, &graph));
    EXPECT_TRUE(fills(graph, stream, p, value));
  }
  EXPECT_OK(cuStreamDestroy_v2(stream));
  EXPECT_OK(cuMemFree_v2(p));
}

DRIVER_CHECK(a_capture_frees_nothing_that_is_from_before_it) {
  const WithContext with;
  CUdeviceptr p = 0, q = 0;
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  EXPECT_OK(cuMemAlloc_v2(&p, kMiB));
  EXPECT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(cuMemAllocAsync(&q, kMiB, stream));
  EXPECT_OK(cuStreamSynchronize(stream));
  EXPECT_OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_OK(cuMemsetD32Async(p, 7, kWords, stream));
  EXPECT_CODE(cuMemFreeAsync(q, stream), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(cuStreamEndCapture(stream, &graph));
  EXPECT_TRUE(fills(graph, stream, p, 7));
  EXPECT_OK(cuMemFreeAsync(q, stream));
  EXPECT_OK(cuStreamSynchronize(stream));
  EXPECT_OK(cuStreamDestroy_v2(stream));
  EXPECT_OK(cuMemFree_v2(p));
}

// Many captures, one after another, while other threads keep making calls that are allowed.
DRIVER_CHECK(captures_and_their_neighbours_do_not_notice_each_other) {
  const WithContext with;
  std::atomic<bool> over{false};
  std::atomic<int> failed{0};
  const auto beside = [&](const std::function<bool()>& body) {
    return std::thread([&, body] {
      if (cuCtxSetCurrent(with.context()) != CUDA_SUCCESS) ++failed;
      while (!over) {
        if (!body()) ++failed;
        std::this_thread::yield();
      }
    });
  };
  std::thread asks = beside([] {
    std::size_t free = 0, total = 0;
    return cuMemGetInfo_v2(&free, &total) == CUDA_SUCCESS;
  });
  std::thread makes = beside([] {
    CUstream stream = nullptr;
    CUevent event = nullptr;
    return cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS &&
           cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS &&
           cuEventRecord(event, stream) == CUDA_SUCCESS &&
           cuEventDestroy_v2(event) == CUDA_SUCCESS && cuStreamDestroy_v2(stream) == CUDA_SUCCESS;
  });
  std::thread allocates = beside([] {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    cuThreadExchangeStreamCaptureMode(&mode);
    CUdeviceptr p = 0;
    const bool done =
        cuMemAlloc_v2(&p, 3 * kMiB) == CUDA_SUCCESS && cuMemFree_v2(p) == CUDA_SUCCESS;
    cuThreadExchangeStreamCaptureMode(&mode);
    return done;
  });
  CUdeviceptr p = 0;
  CUstream stream = nullptr;
  int wrong = 0;
  if (cuMemAlloc_v2(&p, kMiB) != CUDA_SUCCESS ||
      cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) {
    ++wrong;
  }
  for (std::uint32_t i = 0; i < 150 && wrong == 0; ++i) {
    CUgraph graph = nullptr;
    if (cuStreamBeginCapture_v2(stream, kModes[i % 3]) != CUDA_SUCCESS) ++wrong;
    if (cuMemsetD32Async(p, i, kWords, stream) != CUDA_SUCCESS) ++wrong;
    if (cuStreamEndCapture(stream, &graph) != CUDA_SUCCESS) ++wrong;
    if (wrong == 0 && cuGraphDestroy(graph) != CUDA_SUCCESS) ++wrong;
  }
  over = true;
  asks.join();
  makes.join();
  allocates.join();
  EXPECT_SAME(wrong, 0);
  EXPECT_SAME(failed.load(), 0);
  EXPECT_OK(cuStreamDestroy_v2(stream));
  EXPECT_OK(cuMemFree_v2(p));
}
