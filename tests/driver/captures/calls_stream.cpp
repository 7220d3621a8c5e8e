// Calls that take a stream, each aimed at every kind of stream; and calls about streams and events.
#include "tests/driver/captures/scene.h"

#include <cstdint>
#include <iterator>

namespace captures {
namespace {

using Kind = CUstream (*)(const Scene&);

struct Target {
  const char* name;
  Kind stream;
  bool joins;
  bool is_made;  // by cuStreamCreate, so it can capture
};

const Target kTargets[] = {
    {"capturing stream", [](const Scene& s) { return s.capturing; }, false, true},
    {"joined stream", [](const Scene& s) { return s.joined; }, true, true},
    {"unrelated stream", [](const Scene& s) { return s.unrelated; }, false, true},
    {"legacy stream", [](const Scene&) { return CU_STREAM_LEGACY; }, false, false},
    {"per-thread stream", [](const Scene&) { return CU_STREAM_PER_THREAD; }, false, false},
};

struct StreamCall {
  const char* function;
  const char* with;  // another argument; may be empty
  CUresult (*make)(Scene&, CUstream);
  void (*prepare)(Scene&) = nullptr;
  void (*inside)(Scene&) = nullptr;
  bool made_only = false;  // skipped for the default streams
};

// Memory allocated in the capture belongs to a node and ends with the graph.
CUresult allocated(Scene& s, CUstream stream, CUdeviceptr pointer, CUresult result) {
  if (result == CUDA_SUCCESS && !s.takes_part(stream)) s.async_pointer = pointer;
  return result;
}

CUresult allocate(Scene& s, CUstream stream) {
  CUdeviceptr pointer = 0;
  const CUresult result = cuMemAllocAsync(&pointer, kBytes, stream);
  return allocated(s, stream, pointer, result);
}

CUresult allocate_from_pool(Scene& s, CUstream stream) {
  CUdeviceptr pointer = 0;
  const CUresult result = cuMemAllocFromPoolAsync(&pointer, kBytes, s.default_pool, stream);
  return allocated(s, stream, pointer, result);
}

void with_async_pointer(Scene& s) {
  s.need(cuMemAllocAsync(&s.async_pointer, kBytes, s.unrelated));
}

void with_graph_pointer(Scene& s) {
  s.need(cuMemAllocAsync(&s.graph_pointer, kBytes, s.capturing));
}

CUresult free_outside(Scene& s, CUstream stream) {
  const CUresult result = cuMemFreeAsync(s.async_pointer, stream);
  return s.takes_part(stream) ? result : gone(s.async_pointer, result);
}

CUresult launch_kernel(Scene& s, CUstream stream) {
  std::uint64_t none = 0;
  void* arguments[] = {&none};
  return cuLaunchKernel(s.kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr);
}

CUresult ask_capture(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  CUgraph graph = nullptr;
  const CUgraphNode* nodes = nullptr;
  std::size_t count = 0;
  return cuStreamGetCaptureInfo_v2(stream, &status, &id, &graph, &nodes, &count);
}

const StreamCall kQuestions[] = {
    {"cuStreamQuery", "", [](Scene&, CUstream stream) { return cuStreamQuery(stream); }},
    {"cuStreamSynchronize", "",
     [](Scene&, CUstream stream) { return cuStreamSynchronize(stream); }},
    {"cuStreamIsCapturing", "",
     [](Scene&, CUstream stream) {
       CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
       return cuStreamIsCapturing(stream, &status);
     }},
    {"cuStreamGetCaptureInfo_v2", "", [](Scene&, CUstream stream) { return ask_capture(stream); }},
    {"cuStreamGetCtx", "",
     [](Scene&, CUstream stream) {
       CUcontext context = nullptr;
       return cuStreamGetCtx(stream, &context);
     }},
    {"cuStreamGetFlags", "",
     [](Scene&, CUstream stream) {
       unsigned flags = 0;
       return cuStreamGetFlags(stream, &flags);
     }},
    {"cuStreamGetPriority", "",
     [](Scene&, CUstream stream) {
       int priority = 0;
       return cuStreamGetPriority(stream, &priority);
     }},
    {"cuStreamGetId", "",
     [](Scene&, CUstream stream) {
       unsigned long long id = 0;
       return cuStreamGetId(stream, &id);
     }},
};

const StreamCall kWork[] = {
    {"cuEventRecord", "fresh event",
     [](Scene& s, CUstream stream) { return cuEventRecord(s.fresh, stream); }},
    {"cuEventRecord", "event of the capture",
     [](Scene& s, CUstream stream) { return cuEventRecord(s.recorded, stream); }},
    {"cuEventRecordWithFlags", "external",
     [](Scene& s, CUstream stream) {
       return cuEventRecordWithFlags(s.fresh, stream, CU_EVENT_RECORD_EXTERNAL);
     }},
    {"cuStreamWaitEvent", "event from before",
     [](Scene& s, CUstream stream) { return cuStreamWaitEvent(stream, s.done, 0); }},
    {"cuStreamWaitEvent", "event of the capture",
     [](Scene& s, CUstream stream) { return cuStreamWaitEvent(stream, s.recorded, 0); }},
    {"cuLaunchKernel", "", launch_kernel},
    {"cuLaunchHostFunc", "",
     [](Scene&, CUstream stream) {
       return cuLaunchHostFunc(
           stream, [](void*) {}, nullptr);
     }},
    {"cuStreamAddCallback", "",
     [](Scene&, CUstream stream) {
       return cuStreamAddCallback(
           stream, [](CUstream, CUresult, void*) {}, nullptr, 0);
     }},
    {"cuMemsetD8Async", "",
     [](Scene& s, CUstream stream) { return cuMemsetD8Async(s.memory, 1, 64, stream); }},
    {"cuMemcpyHtoDAsync_v2", "page-locked",
     [](Scene& s, CUstream stream) {
       return cuMemcpyHtoDAsync_v2(s.memory, s.pinned, 64, stream);
     }},
    {"cuMemcpyHtoDAsync_v2", "pageable",
     [](Scene& s, CUstream stream) {
       return cuMemcpyHtoDAsync_v2(s.memory, s.pageable, 64, stream);
     }},
    {"cuMemcpyDtoHAsync_v2", "page-locked",
     [](Scene& s, CUstream stream) {
       return cuMemcpyDtoHAsync_v2(s.pinned, s.memory, 64, stream);
     }},
    {"cuMemcpyDtoHAsync_v2", "pageable",
     [](Scene& s, CUstream stream) {
       return cuMemcpyDtoHAsync_v2(s.pageable, s.memory, 64, stream);
     }},
    {"cuMemcpyDtoDAsync_v2", "",
     [](Scene& s, CUstream stream) {
       return cuMemcpyDtoDAsync_v2(s.memory, s.memory + 4096, 64, stream);
     }},
    {"cuStreamWriteValue32_v2", "",
     [](Scene& s, CUstream stream) { return cuStreamWriteValue32_v2(stream, s.memory, 1, 0); }},
    {"cuGraphUpload", "",
     [](Scene& s, CUstream stream) { return cuGraphUpload(s.graph_exec, stream); }},
    {"cuGraphLaunch", "",
     [](Scene& s, CUstream stream) { return cuGraphLaunch(s.graph_exec, stream); }},
    {"cuMemAllocAsync", "", allocate},
    {"cuMemAllocFromPoolAsync", "", allocate_from_pool},
    {"cuMemFreeAsync", "memory from before", free_outside, with_async_pointer},
    {"cuMemFreeAsync", "memory of the capture",
     [](Scene& s, CUstream stream) { return cuMemFreeAsync(s.graph_pointer, stream); }, nullptr,
     with_graph_pointer},
    {"cuStreamBeginCapture_v2", "relaxed",
     [](Scene&, CUstream stream) {
       return cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
     },
     nullptr, nullptr, true},
};

// The variants called by a program that is built for per-thread default streams.
const Call kPerThread[] = {
    {"cuEventRecord_ptsz",
     "own stream",
     {},
     [](Scene& s) { return cuEventRecord_ptsz(s.fresh, nullptr); }},
    {"cuMemFreeAsync_ptsz", "own stream", with_async_pointer,
     [](Scene& s) { return gone(s.async_pointer, cuMemFreeAsync_ptsz(s.async_pointer, nullptr)); }},
    {"cuStreamGetCtx_ptsz",
     "own stream",
     {},
     [](Scene&) {
       CUcontext context = nullptr;
       return cuStreamGetCtx_ptsz(nullptr, &context);
     }},
    {"cuStreamIsCapturing_ptsz",
     "own stream",
     {},
     [](Scene&) {
       CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
       return cuStreamIsCapturing_ptsz(nullptr, &status);
     }},
    {"cuStreamQuery_ptsz", "own stream", {}, [](Scene&) { return cuStreamQuery_ptsz(nullptr); }},
    {"cuStreamSynchronize_ptsz",
     "own stream",
     {},
     [](Scene&) { return cuStreamSynchronize_ptsz(nullptr); }},
};

const Call kStreams[] = {
    {"cuStreamCreate",
     "non-blocking",
     {},
     [](Scene& s) { return cuStreamCreate(&s.stream, CU_STREAM_NON_BLOCKING); }},
    {"cuStreamCreate",
     "blocking",
     {},
     [](Scene& s) { return cuStreamCreate(&s.stream, CU_STREAM_DEFAULT); }},
    {"cuStreamCreateWithPriority",
     "-",
     {},
     [](Scene& s) { return cuStreamCreateWithPriority(&s.stream, CU_STREAM_NON_BLOCKING, -1); }},
    {"cuCtxGetStreamPriorityRange",
     "-",
     {},
     [](Scene&) {
       int least = 0, greatest = 0;
       return cuCtxGetStreamPriorityRange(&least, &greatest);
     }},
    {"cuStreamEndCapture",
     "unrelated stream",
     {},
     [](Scene& s) { return cuStreamEndCapture(s.unrelated, &s.ended); }},
    {"cuStreamEndCapture",
     "joined stream",
     {},
     [](Scene& s) { return cuStreamEndCapture(s.joined, &s.ended); },
     {},
     true},
    // Marked as slow, because after this call the capture might not end before the process
    // does.
    {"cuStreamDestroy_v2",
     "capturing stream",
     {},
     [](Scene& s) { return gone(s.capturing, cuStreamDestroy_v2(s.capturing)); },
     {},
     false,
     true},
    {"cuStreamDestroy_v2",
     "joined stream",
     {},
     [](Scene& s) { return gone(s.joined, cuStreamDestroy_v2(s.joined)); },
     {},
     true},
    {"cuStreamDestroy_v2",
     "unrelated stream",
     {},
     [](Scene& s) { return gone(s.unrelated, cuStreamDestroy_v2(s.unrelated)); }},
    // The stream has work that the capturing stream does not wait for. The work ends with the
    // stream.
    {"cuStreamDestroy_v2",
     "stream that joined and did not come back",
     {},
     [](Scene& s) { return gone(s.unrelated, cuStreamDestroy_v2(s.unrelated)); },
     [](Scene& s) {
       s.need(cuStreamWaitEvent(s.unrelated, s.recorded, 0));
       s.need(cuMemsetD8Async(s.memory + 8192, 1, 64, s.unrelated));
     }},
};

const Call kEvents[] = {
    {"cuEventCreate", "-", {}, [](Scene& s) { return cuEventCreate(&s.event, 0); }},
    {"cuEventCreate",
     "without times",
     {},
     [](Scene& s) { return cuEventCreate(&s.event, CU_EVENT_DISABLE_TIMING); }},
    {"cuEventDestroy_v2",
     "fresh event",
     {},
     [](Scene& s) { return gone(s.fresh, cuEventDestroy_v2(s.fresh)); }},
    {"cuEventDestroy_v2",
     "event from before",
     {},
     [](Scene& s) { return gone(s.done, cuEventDestroy_v2(s.done)); }},
    {"cuEventDestroy_v2",
     "event of the capture",
     {},
     [](Scene& s) { return gone(s.recorded, cuEventDestroy_v2(s.recorded)); }},
    {"cuEventDestroy_v2",
     "event that a stream joined by",
     {},
     [](Scene& s) { return gone(s.fork, cuEventDestroy_v2(s.fork)); },
     {},
     true},
    {"cuEventQuery", "fresh event", {}, [](Scene& s) { return cuEventQuery(s.fresh); }},
    {"cuEventQuery", "event from before", {}, [](Scene& s) { return cuEventQuery(s.done); }},
    {"cuEventQuery", "event of the capture", {}, [](Scene& s) { return cuEventQuery(s.recorded); }},
    {"cuEventQuery",
     "event of a joined stream",
     {},
     [](Scene& s) { return cuEventQuery(s.join); },
     {},
     true},
    {"cuEventSynchronize", "fresh event", {}, [](Scene& s) { return cuEventSynchronize(s.fresh); }},
    {"cuEventSynchronize",
     "event from before",
     {},
     [](Scene& s) { return cuEventSynchronize(s.done); }},
    {"cuEventSynchronize",
     "event of the capture",
     {},
     [](Scene& s) { return cuEventSynchronize(s.recorded); }},
    {"cuEventElapsedTime",
     "events from before",
     {},
     [](Scene& s) {
       float milliseconds = 0;
       return cuEventElapsedTime(&milliseconds, s.done, s.done);
     }},
    {"cuEventElapsedTime",
     "event of the capture",
     {},
     [](Scene& s) {
       float milliseconds = 0;
       return cuEventElapsedTime(&milliseconds, s.done, s.recorded);
     }},
};

Call aimed(const StreamCall& call, const Target& target) {
  std::string aim = target.name;
  if (*call.with != '\0') aim += std::string(", ") + call.with;
  const auto make = call.make;
  const auto stream = target.stream;
  Call out = {call.function, aim, call.prepare,
              [make, stream](Scene& s) { return make(s, stream(s)); }};
  out.inside = call.inside;
  out.joins = target.joins;
  return out;
}

template <std::size_t N>
void add_aimed(std::vector<Call>& calls, const StreamCall (&list)[N]) {
  for (const StreamCall& call : list) {
    for (const Target& target : kTargets) {
      if (target.is_made || !call.made_only) calls.push_back(aimed(call, target));
    }
  }
}

}  // namespace

void add_stream_calls(std::vector<Call>& calls) {
  add_aimed(calls, kQuestions);
  add_aimed(calls, kWork);
  calls.insert(calls.end(), std::begin(kPerThread), std::end(kPerThread));
  calls.insert(calls.end(), std::begin(kStreams), std::end(kStreams));
  calls.insert(calls.end(), std::begin(kEvents), std::end(kEvents));
}

}  // namespace captures
