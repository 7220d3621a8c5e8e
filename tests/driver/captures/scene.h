// The objects that exist when a call is measured: three streams, one of which captures, events,
// memory of each family, and the objects that the call makes or removes. One scene in each
// measuring process; the measuring thread and the calling thread use it in turns.
#pragma once

#include "tests/driver/captures/functions.h"

#include <functional>
#include <string>
#include <vector>

namespace captures {

inline constexpr std::size_t kBytes = 64 << 10;
inline constexpr std::size_t kBlock =
    2 << 20;  // of mapped memory: no driver has a larger granularity

struct Scene {
  // These live as long as the process.
  CUcontext context = nullptr;
  CUdeviceptr memory = 0;
  void* pageable = nullptr;
  void* pinned = nullptr;
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  CUmemoryPool default_pool = nullptr;
  CUgraph graph = nullptr;  // a memset and a child graph
  CUgraphNode graph_nodes[2] = {};
  CUgraphExec graph_exec = nullptr;
  CUgraph memory_graph = nullptr;
  CUgraphNode memory_node = nullptr;
  CUcontext other_context = nullptr;
  CUgreenCtx green = nullptr;

  // These live as long as one cell. A call that destroys one of them sets it to null.
  CUstream capturing = nullptr;
  CUstream joined = nullptr;
  CUstream unrelated = nullptr;
  CUevent fork = nullptr, join = nullptr;
  CUevent fresh = nullptr;     // never recorded
  CUevent done = nullptr;      // recorded in the unrelated stream, before the capture
  CUevent recorded = nullptr;  // recorded in the capture
  CUgraph ended = nullptr;     // the result of another capture

  // Made by or for a call, null otherwise; clean_up() frees them.
  CUdeviceptr pointer = 0;
  CUdeviceptr async_pointer = 0;
  CUdeviceptr graph_pointer = 0;  // belongs to the capture
  void* host_memory = nullptr;
  void* registered = nullptr;
  CUarray array = nullptr;
  CUmipmappedArray mipmap = nullptr;
  CUdeviceptr reserved = 0;
  CUmemGenericAllocationHandle handle = 0;
  CUmemGenericAllocationHandle second_handle = 0;
  bool mapped = false;
  int descriptor = -1;
  CUmemoryPool pool = nullptr, imported_pool = nullptr;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUmodule loaded = nullptr;
  CUlibrary library = nullptr;
  CUgraph new_graph = nullptr;
  CUgraphExec new_exec = nullptr;
  CUcontext new_context = nullptr;
  int pushed = 0;  // how many times the context was pushed beyond the first

  // Checks a step before the call; a cell in which such a step fails is not measured.
  void need(CUresult result) { good = good && result == CUDA_SUCCESS; }
  bool good = true;
  bool takes_part(CUstream which) const { return which == capturing || which == joined; }

  bool set_up();  // once; makes the context current
  void open(unsigned capturing_flags);
  // `only_ended`: only frees what the call made; neither ends a capture nor waits for the GPU.
  void clean_up(bool only_ended = false);  // call it in the thread that made the call
  void close();
};

// A call to measure. The capturing thread makes `inside`, during the capture.
struct Call {
  const char* function;
  std::string aim;
  std::function<void(Scene&)> prepare;
  std::function<CUresult(Scene&)> make;
  std::function<void(Scene&)> inside = {};
  bool joins = false;  // a stream has joined the capture
  // A slow call, such as making a context, is measured with one kind of capturing stream only.
  bool slow = false;
};

// Each adds all calls of one of the files calls_*.cpp.
void add_memory_calls(std::vector<Call>& calls);
void add_mapping_calls(std::vector<Call>& calls);
void add_stream_calls(std::vector<Call>& calls);
void add_context_calls(std::vector<Call>& calls);
void add_code_calls(std::vector<Call>& calls);
// The calls of all these files.
std::vector<Call> all_calls();

// For a call that destroys the object in `slot`.
template <class T>
CUresult gone(T& slot, CUresult result) {
  if (result == CUDA_SUCCESS) slot = {};
  return result;
}

inline constexpr char kKernel[] = R"ptx(
.version 5.0
.target sm_60
.address_size 64
.visible .entry spin_us(.param .u64 p_us)
{
    ret;
}
)ptx";
inline constexpr char kKernelName[] = "spin_us";  // known to the simulated driver too

}  // namespace captures
