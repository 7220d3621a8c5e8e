// One operation of a GPU, as data: a stream runs it, a capture or a graph stores it.
#pragma once

#include "abi/cuda_abi.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <variant>
#include <vector>

namespace gpurota::sim {

struct ArrayMemory;
struct Event;
struct Function;
struct Graph;
struct GraphNode;

// One side of a copy: memory by address and pitch, or an array.
struct CopySide {
  CUdeviceptr address = 0;  // host or device
  ArrayMemory* array = nullptr;
  std::size_t pitch = 0, height = 0;  // bytes of a row, rows of a layer
  std::size_t x = 0, y = 0, z = 0;    // x in bytes
  bool may_be_host = false;           // an address in no allocation is the program's own
};

struct CopyOp {
  CopySide from, to;
  std::size_t width = 0, height = 1, depth = 1;      // width in bytes
  CUDA_MEMCPY3D asked = {};                          // what reading a graph node returns
  std::shared_ptr<std::vector<std::byte>> snapshot;  // owns the bytes if `from` is a snapshot
};

struct SetOp {
  CUDA_MEMSET_NODE_PARAMS params = {};
};

struct KernelOp {
  Function* function = nullptr;
  unsigned grid[3] = {1, 1, 1}, block[3] = {1, 1, 1}, shared_bytes = 0;
  std::vector<std::byte> arguments;      // one after the other, each at its own alignment
  std::vector<void*> argument_pointers;  // into `arguments`, for reading a node back
};

struct HostOp {
  CUhostFn function = nullptr;
  void* data = nullptr;
};

struct EmptyOp {};
struct EventRecordOp {
  CUevent event = nullptr;
};
struct EventWaitOp {
  CUevent event = nullptr;
};
struct ChildOp {
  std::shared_ptr<Graph> graph;
};
struct AllocOp {
  CUDA_MEM_ALLOC_NODE_PARAMS params = {};
};
struct FreeOp {
  CUdeviceptr address = 0;
};
struct MemOp {  // cuStreamWriteValue and cuStreamWaitValue
  CUdeviceptr address = 0;
  std::uint64_t value = 0;
  unsigned flags = 0;
  bool is_wait = false, is_64_bit = false;
};

using Operation = std::variant<EmptyOp, KernelOp, CopyOp, SetOp, HostOp, EventRecordOp, EventWaitOp,
                               ChildOp, AllocOp, FreeOp, MemOp>;

}  // namespace gpurota::sim
