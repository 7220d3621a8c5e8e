// Captures of a program compiled for per-thread default streams, in the modes that it is told to
// use.
#include "tests/interposer/swap_probe.h"

#include <thread>

namespace {

constexpr std::size_t kWords = kMiB;

struct Graph {
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  ~Graph() {
    if (exec != nullptr) OK(cuGraphExecDestroy(exec));
    if (graph != nullptr) OK(cuGraphDestroy(graph));
  }
};

// Captures a fill of `from` with `value` and a copy. Meanwhile the daemon ends the turn, or tries
// to.
bool capture(CUdeviceptr from, CUdeviceptr to, unsigned value, bool old, int pause_ms,
             Graph* made) {
  const auto begin =
      function<CUresult(CUstream, CUstreamCaptureMode)>("cuStreamBeginCapture_v2_ptsz");
  const auto begin_old = function<CUresult(CUstream)>("cuStreamBeginCapture_ptsz");
  const auto end = function<CUresult(CUstream, CUgraph*)>("cuStreamEndCapture_ptsz");
  const auto set =
      function<CUresult(CUdeviceptr, unsigned, std::size_t, CUstream)>("cuMemsetD32Async_ptsz");
  const auto copy = function<CUresult(CUdeviceptr, CUdeviceptr, std::size_t, CUstream)>(
      "cuMemcpyDtoDAsync_v2_ptsz");
  if (!(old ? OK(begin_old(nullptr)) : OK(begin(nullptr, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL))) ||
      !OK(set(from, value, kWords, nullptr))) {
    return false;
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
  return OK(copy(to, from, kWords * 4, nullptr)) && OK(end(nullptr, &made->graph)) &&
         OK(cuGraphInstantiateWithFlags(&made->exec, made->graph, 0));
}

}  // namespace

void capture_per_thread() {
  const auto launch_graph = function<CUresult(CUgraphExec, CUstream)>("cuGraphLaunch_ptsz");
  const auto read =
      function<CUresult(void*, CUdeviceptr, std::size_t, CUstream)>("cuMemcpyDtoHAsync_v2_ptsz");
  const auto wait = function<CUresult(CUstream)>("cuStreamSynchronize_ptsz");
  CUdeviceptr a = 0, b = 0;
  OK(cuMemAlloc_v2(&a, kWords * 4));
  OK(cuMemAlloc_v2(&b, kWords * 4));
  Random random(1);
  for (bool old = false; goes_on(); old = !old) {
    Graph made;
    const unsigned value = random();
    unsigned got = 0;
    if (!capture(a, b, value, old, static_cast<int>(random() % 15), &made) ||
        !OK(launch_graph(made.exec, nullptr)) || !OK(read(&got, b + kWords * 4 - 4, 4, nullptr)) ||
        !OK(wait(nullptr)) || !SAME(got, value)) {
      break;
    }
  }
  OK(cuMemFree_v2(a));
  OK(cuMemFree_v2(b));
}

void allocate_beside_captures(CUcontext context) {
  const auto exchange =
      function<CUresult(CUstreamCaptureMode*)>("cuThreadExchangeStreamCaptureMode");
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  if (!OK(cuCtxSetCurrent(context)) || !OK(exchange(&mode))) return;
  while (goes_on()) {
    CUdeviceptr p = 0;
    if (!OK(cuMemAlloc_v2(&p, 3 * kMiB)) || !OK(cuMemFree_v2(p))) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}
