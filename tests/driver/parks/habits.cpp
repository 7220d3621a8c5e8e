// Habits of a process that may prevent parking: one kind of memory, object or state, made before
// the process is parked and used afterwards.
#include "tests/driver/captures/scene.h"
#include "tests/driver/parks/park.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>

#include <sys/mman.h>

namespace parks {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

struct State {
  captures::Scene scene;
  CUdeviceptr memory = 0;
  CUmemoryPool pool = nullptr;
  CUgraphExec exec = nullptr;
  CUarray array = nullptr;
  CUevent event = nullptr;
  CUstream stream = nullptr;
  unsigned* flag = nullptr;  // host memory that a stream waits for
  void* registered = nullptr;
  std::size_t registered_bytes = 0;
};

struct Habit {
  const char* name;
  std::function<bool(State&)> make;
  std::function<bool(State&)> use;  // after the process continues; returns whether all is right
};

bool ok(CUresult result) { return result == CUDA_SUCCESS; }

bool fill(CUdeviceptr memory, std::size_t bytes) {
  return ok(cuMemsetD32_v2(memory, 0xabcd, bytes / 4)) && ok(cuCtxSynchronize());
}
bool is_filled(CUdeviceptr memory, std::size_t bytes) {
  unsigned first = 0, last = 0;
  return ok(cuMemcpyDtoH_v2(&first, memory, 4)) &&
         ok(cuMemcpyDtoH_v2(&last, memory + bytes - 4, 4)) && first == 0xabcd && last == 0xabcd;
}

// Makes the stream wait until the word at this address is at least 1.
bool wait_for_value(CUstream stream, CUdeviceptr at) {
  const auto wait =
      function<CUresult(CUstream, CUdeviceptr, cuuint32_t, unsigned)>("cuStreamWaitValue32_v2");
  return wait != nullptr && ok(wait(stream, at, 1, 0));
}

std::vector<Habit> memory_habits() {
  return {
      {"nothing but memory",
       [](State& s) {
         return ok(cuMemAlloc_v2(&s.memory, 64 * kMiB)) && fill(s.memory, 64 * kMiB);
       },
       [](State& s) { return is_filled(s.memory, 64 * kMiB); }},
      {"memory of the default pool (cudaMallocAsync)",
       [](State& s) {
         return ok(cuMemAllocAsync(&s.memory, 64 * kMiB, nullptr)) && fill(s.memory, 64 * kMiB);
       },
       [](State& s) {
         return is_filled(s.memory, 64 * kMiB) && ok(cuMemFreeAsync(s.memory, nullptr));
       }},
      {"a pool of its own",
       [](State& s) {
         CUmemPoolProps props = {};
         props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
         props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
         return ok(cuMemPoolCreate(&s.pool, &props)) &&
                ok(cuMemAllocFromPoolAsync(&s.memory, 64 * kMiB, s.pool, nullptr)) &&
                fill(s.memory, 64 * kMiB);
       },
       [](State& s) { return is_filled(s.memory, 64 * kMiB); }},
      {"a pool that can be exported",
       [](State& s) {
         CUmemPoolProps props = {};
         props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
         props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
         props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
         return ok(cuMemPoolCreate(&s.pool, &props)) &&
                ok(cuMemAllocFromPoolAsync(&s.memory, 64 * kMiB, s.pool, nullptr)) &&
                fill(s.memory, 64 * kMiB);
       },
       [](State& s) { return is_filled(s.memory, 64 * kMiB); }},
  };
}

std::vector<Habit> other_habits() {
  return {
      {"an array",
       [](State& s) {
         CUDA_ARRAY_DESCRIPTOR format = {};
         format.Width = 1024;
         format.Height = 1024;
         format.Format = CU_AD_FORMAT_FLOAT;
         format.NumChannels = 1;
         return ok(cuArrayCreate_v2(&s.array, &format));
       },
       [](State& s) { return ok(cuArrayDestroy(s.array)); }},
      {"a graph with memory nodes that was launched",
       [](State& s) {
         return ok(cuGraphInstantiateWithFlags(&s.exec, s.scene.memory_graph, 0)) &&
                ok(cuGraphLaunch(s.exec, nullptr)) && ok(cuCtxSynchronize());
       },
       [](State& s) { return ok(cuGraphExecDestroy(s.exec)); }},
      {"an instantiated graph, launched again afterwards",
       [](State& s) { return ok(cuGraphLaunch(s.scene.graph_exec, nullptr)); },
       [](State& s) {
         return ok(cuGraphLaunch(s.scene.graph_exec, nullptr)) && ok(cuCtxSynchronize());
       }},
      {"a stream that waits for a value in host memory",
       [](State& s) {
         void* memory = nullptr;
         if (!ok(cuMemHostAlloc(&memory, 4096, 0)) || !ok(cuStreamCreate(&s.stream, 1)))
           return false;
         s.flag = static_cast<unsigned*>(memory);
         *s.flag = 0;
         CUdeviceptr at = 0;
         return ok(cuMemHostGetDevicePointer_v2(&at, memory, 0)) && wait_for_value(s.stream, at);
       },
       [](State& s) {
         __atomic_store_n(s.flag, 1u, __ATOMIC_SEQ_CST);
         return ok(cuStreamSynchronize(s.stream));
       }},
      {"an event that other processes can open",
       [](State& s) {
         CUipcEventHandle handle = {};
         return ok(cuEventCreate(&s.event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING)) &&
                ok(cuIpcGetEventHandle(&handle, s.event));
       },
       [](State& s) { return ok(cuEventRecord(s.event, nullptr)); }},
      {"memory that was exported (cuIpcGetMemHandle)",
       [](State& s) {
         CUipcMemHandle handle = {};
         return ok(cuMemAlloc_v2(&s.memory, 64 * kMiB)) && fill(s.memory, 64 * kMiB) &&
                ok(cuIpcGetMemHandle(&handle, s.memory));
       },
       [](State& s) { return is_filled(s.memory, 64 * kMiB); }},
      {"a capture under way",
       [](State& s) {
         return ok(cuMemAlloc_v2(&s.memory, kMiB)) && ok(cuStreamCreate(&s.stream, 1)) &&
                ok(cuStreamBeginCapture_v2(s.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
       },
       [](State& s) {
         CUgraph graph = nullptr;
         return ok(cuMemsetD32Async(s.memory, 1, kMiB / 4, s.stream)) &&
                ok(cuStreamEndCapture(s.stream, &graph));
       }},
      {"a module loaded afterwards", [](State&) { return true; },
       [](State&) {
         CUmodule module = nullptr;
         CUfunction kernel = nullptr;
         return ok(cuModuleLoadData(&module, captures::kKernel)) &&
                ok(cuModuleGetFunction(&kernel, module, captures::kKernelName));
       }},
      {"managed memory",
       [](State& s) {
         return ok(cuMemAllocManaged(&s.memory, 64 * kMiB, 1)) && fill(s.memory, 64 * kMiB);
       },
       [](State& s) { return is_filled(s.memory, 64 * kMiB); }},
      {"8 GiB of registered host memory",
       [](State& s) {
         s.registered_bytes = 8192 * kMiB;
         s.registered = ::mmap(nullptr, s.registered_bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
         if (s.registered == MAP_FAILED) return false;
         ::madvise(s.registered, s.registered_bytes, MADV_HUGEPAGE);
         std::memset(s.registered, 1, s.registered_bytes);
         return ok(cuMemHostRegister_v2(s.registered, s.registered_bytes, 1));
       },
       [](State& s) { return ok(cuMemHostUnregister(s.registered)); }},
      {"a second context", [](State& s) { return ok(cuCtxCreate_v2(&s.scene.new_context, 0, 0)); },
       [](State& s) { return ok(cuCtxDestroy_v2(s.scene.new_context)); }},
  };
}

std::vector<Habit> habits() {
  std::vector<Habit> all = memory_habits();
  for (Habit& habit : other_habits()) all.push_back(std::move(habit));
  return all;
}

}  // namespace

std::vector<std::string> names_of_habits() {
  std::vector<std::string> names;
  for (const Habit& habit : habits()) names.emplace_back(habit.name);
  return names;
}

// The main thread only sleeps while its process is parked.
int keep_a_habit(Page& page, std::size_t index) {
  const Habit habit = habits().at(index);
  State state;
  if (!state.scene.set_up() || !habit.make(state)) {
    page.ready = 2;
    return 1;
  }
  page.ready = 1;
  while (page.phase != kEnd) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  page.done = habit.use(state) ? 1 : 2;
  return 0;
}

}  // namespace parks
