// Programs for the tests of parking, on the simulator and on a real GPU.
//
//   park_program compute STOP    writes to GPU memory, waits for that in all ways that there are,
//                                and checks what it reads back; a second thread asks without pause
//                                whether work has ended. Prints "steps N polls M" every 50 ms.
//   park_program managed STOP    the same, with managed memory
//   park_program host STOP       the same, with memory of cuMemCreate on the host
//   park_program blocked STOP    a thread waits for work that does not end
//
// The programs print "ready" at first. When the file STOP exists, they print "right" or "wrong" and
// end.
#include "abi/cuda_abi.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <unistd.h>

namespace {

constexpr std::size_t kBytes = std::size_t{16} << 20;
constexpr std::size_t kWords = kBytes / 4;

void* g_driver = nullptr;

template <class Function>
Function* find(const char* name) {
  void* const found = ::dlsym(g_driver, name);
  if (found == nullptr) std::exit(2);
  return reinterpret_cast<Function*>(found);
}

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "park_program: %s: error %d\n", what, result);
  std::_Exit(1);
}
#define CHECK(call) check(call, #call)

struct Functions {
  CUresult (*stream_create)(CUstream*, unsigned);
  CUresult (*stream_query)(CUstream);
  CUresult (*stream_query_ptsz)(CUstream);
  CUresult (*stream_synchronize)(CUstream);
  CUresult (*stream_synchronize_ptsz)(CUstream);
  CUresult (*event_create)(CUevent*, unsigned);
  CUresult (*event_record)(CUevent, CUstream);
  CUresult (*event_query)(CUevent);
  CUresult (*event_synchronize)(CUevent);
  CUresult (*event_elapsed)(float*, CUevent, CUevent);
  CUresult (*context_synchronize)();
  CUresult (*context_set)(CUcontext);
  CUresult (*memory_allocate)(CUdeviceptr*, std::size_t);
  CUresult (*memory_set)(CUdeviceptr, unsigned, std::size_t, CUstream);
  CUresult (*memory_copy)(CUdeviceptr, CUdeviceptr, std::size_t, CUstream);
  CUresult (*memory_read)(void*, CUdeviceptr, std::size_t);
} g;

CUcontext g_context = nullptr;
std::string g_stop;
std::atomic<std::uint64_t> g_steps{0}, g_polls{0};
std::atomic<bool> g_wrong{false}, g_ended{false};

bool told_to_stop() { return ::access(g_stop.c_str(), F_OK) == 0; }

void start_driver() {
  g_driver = ::dlopen("libcuda.so.1", RTLD_NOW);
  if (g_driver == nullptr) std::exit(2);
  const auto load = [](auto& function, const char* name) {
    function = find<std::remove_pointer_t<std::remove_reference_t<decltype(function)>>>(name);
  };
  load(g.stream_create, "cuStreamCreate");
  load(g.stream_query, "cuStreamQuery");
  load(g.stream_query_ptsz, "cuStreamQuery_ptsz");
  load(g.stream_synchronize, "cuStreamSynchronize");
  load(g.stream_synchronize_ptsz, "cuStreamSynchronize_ptsz");
  load(g.event_create, "cuEventCreate");
  load(g.event_record, "cuEventRecord");
  load(g.event_query, "cuEventQuery");
  load(g.event_synchronize, "cuEventSynchronize");
  load(g.event_elapsed, "cuEventElapsedTime");
  load(g.context_synchronize, "cuCtxSynchronize");
  load(g.context_set, "cuCtxSetCurrent");
  load(g.memory_allocate, "cuMemAlloc_v2");
  load(g.memory_set, "cuMemsetD32Async");
  load(g.memory_copy, "cuMemcpyDtoDAsync_v2");
  load(g.memory_read, "cuMemcpyDtoH_v2");
  CHECK(find<CUresult(unsigned)>("cuInit")(0));
  CHECK(find<CUresult(CUcontext*, CUdevice)>("cuDevicePrimaryCtxRetain")(&g_context, 0));
  CHECK(g.context_set(g_context));
}

bool is_ready(CUresult result, const char* what) {
  if (result != CUDA_ERROR_NOT_READY) check(result, what);
  return result == CUDA_SUCCESS;
}

void wait_in_some_way(std::uint64_t step, CUstream stream, CUevent event) {
  switch (step % 5) {
    case 0:
      return CHECK(g.stream_synchronize(stream));
    case 1:
      return CHECK(g.event_synchronize(event));
    case 2:
      return CHECK(g.context_synchronize());
    case 3:
      while (!is_ready(g.event_query(event), "cuEventQuery")) std::this_thread::yield();
      return;
    default:
      while (!is_ready(g.stream_query(stream), "cuStreamQuery")) std::this_thread::yield();
  }
}

// Its answers are only right if all work that it asks about has ended.
void compute(CUdeviceptr from, CUdeviceptr to) {
  CHECK(g.context_set(g_context));
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CHECK(g.stream_create(&stream, 1));
  CHECK(g.event_create(&event, CU_EVENT_DISABLE_TIMING));
  std::vector<std::uint32_t> words(kWords);
  for (std::uint64_t step = 1; !told_to_stop(); ++step) {
    const auto value = static_cast<std::uint32_t>(step * 2654435761U);
    CHECK(g.memory_set(from, value, kWords, stream));
    CHECK(g.memory_copy(to, from, kBytes, stream));
    CHECK(g.event_record(event, stream));
    wait_in_some_way(step, stream, event);
    CHECK(g.memory_read(words.data(), to, kBytes));
    for (const std::uint32_t word : words) {
      if (word != value) g_wrong = true;
    }
    g_steps = step;
  }
  g_ended = true;
}

// As a watchdog does, 10,000 times a second.
void poll() {
  CHECK(g.context_set(g_context));
  CUstream stream = nullptr;
  CUevent begin = nullptr;
  CHECK(g.stream_create(&stream, 1));
  CHECK(g.event_create(&begin, CU_EVENT_DISABLE_TIMING));
  CHECK(g.event_record(begin, stream));
  while (!g_ended) {
    (void)is_ready(g.event_query(begin), "cuEventQuery");
    (void)is_ready(g.stream_query(stream), "cuStreamQuery");
    (void)is_ready(g.stream_query_ptsz(nullptr), "cuStreamQuery_ptsz");
    CHECK(g.event_synchronize(begin));
    CHECK(g.stream_synchronize(stream));
    CHECK(g.stream_synchronize_ptsz(nullptr));
    CHECK(g.context_synchronize());
    ++g_polls;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

// The times of events are not answered while the process is parked.
void measure_times() {
  CHECK(g.context_set(g_context));
  CUstream stream = nullptr;
  CUevent begin = nullptr, end = nullptr;
  CHECK(g.stream_create(&stream, 1));
  CHECK(g.event_create(&begin, 0));
  CHECK(g.event_create(&end, 0));
  CHECK(g.event_record(begin, stream));
  CHECK(g.event_record(end, stream));
  CHECK(g.event_synchronize(end));
  while (!g_ended) {
    float ms = -1;
    CHECK(g.event_elapsed(&ms, begin, end));
    if (ms < 0) g_wrong = true;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

int report() {
  std::printf("%s\n", g_wrong ? "wrong" : "right");
  std::fflush(stdout);
  return g_wrong ? 1 : 0;
}

int run_computation(bool managed) {
  CUdeviceptr from = 0, to = 0, other = 0;
  CHECK(g.memory_allocate(&from, kBytes));
  CHECK(g.memory_allocate(&to, kBytes));
  if (managed) {
    CHECK(
        find<CUresult(CUdeviceptr*, std::size_t, unsigned)>("cuMemAllocManaged")(&other, 4096, 1));
  }
  std::thread computes(compute, from, to), polls(poll), measures(measure_times);
  std::printf("ready\n");
  while (!g_ended) {
    std::printf("steps %llu polls %llu\n", static_cast<unsigned long long>(g_steps.load()),
                static_cast<unsigned long long>(g_polls.load()));
    std::fflush(stdout);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  computes.join();
  polls.join();
  measures.join();
  return report();
}

void make_host_memory() {
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
  CUmemGenericAllocationHandle handle = 0;
  CHECK(find<CUresult(CUmemGenericAllocationHandle*, std::size_t, const CUmemAllocationProp*,
                      unsigned long long)>("cuMemCreate")(&handle, std::size_t{2} << 20, &prop, 0));
}

int run_blocked() {
  void* host = nullptr;
  CUdeviceptr at = 0;
  CUstream stream = nullptr;
  CHECK(find<CUresult(void**, std::size_t, unsigned)>("cuMemHostAlloc")(&host, 4096, 0));
  CHECK(
      find<CUresult(CUdeviceptr*, void*, unsigned)>("cuMemHostGetDevicePointer_v2")(&at, host, 0));
  CHECK(g.stream_create(&stream, 1));
  std::memset(host, 0, 4096);
  CHECK(find<CUresult(CUstream, CUdeviceptr, cuuint32_t, unsigned)>("cuStreamWaitValue32_v2")(
      stream, at, 1, 0));
  std::thread waits([stream] {
    CHECK(g.context_set(g_context));
    CHECK(g.stream_synchronize(stream));
  });
  std::printf("ready\n");
  std::fflush(stdout);
  while (!told_to_stop()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  __atomic_store_n(static_cast<std::uint32_t*>(host), 1U, __ATOMIC_SEQ_CST);
  waits.join();
  return report();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string what = argv[1];
  g_stop = argv[2];
  start_driver();
  if (what == "blocked") return run_blocked();
  if (what == "host") make_host_memory();
  return run_computation(what == "managed");
}
