// Memory pools, which allocate in stream order out of chunks that grow in steps of 32 MiB; and the
// memory of graph allocation nodes. Under the driver's lock.
#pragma once

#include "sim/cuda/driver.h"

#include <deque>
#include <map>
#include <memory>
#include <mutex>

namespace gpurota::sim {

struct PoolChunk {
  std::shared_ptr<Mapping> mapping;
  std::map<std::size_t, std::size_t> free;  // offset -> size
  std::size_t used = 0;
};

struct PoolBlock {
  Mapping* chunk = nullptr;
  std::size_t offset = 0, size = 0;
};

// A block freed in a stream that has not reached the free yet: until then, only that stream may
// reuse the block.
struct PendingFree {
  PoolBlock block;
  std::uint64_t stream = 0;
  WorkPtr point;
  bool is_taken = false;
};

struct MemPool {
  CUmemPoolProps properties = {};
  int ordinal = 0;
  int device = -1;  // of the machine; -1: host memory
  bool is_default = false;
  bool is_imported = false;   // another process's: nothing is allocated from it here
  bool is_exported = false;   // so that its allocations can be exported too
  bool is_destroyed = false;  // removed with its last allocation
  std::uint64_t release_threshold = 0;
  int reuse[3] = {1, 1, 1};  // the three reuse attributes: stored, without effect
  std::uint64_t reserved = 0, reserved_high = 0, used = 0, used_high = 0;
  std::map<Mapping*, PoolChunk> chunks;
  std::map<CUdeviceptr, PoolBlock> blocks;  // of live allocations
  std::deque<std::shared_ptr<PendingFree>> pending;
  std::map<int, CUmemAccess_flags> access;  // of other ordinals
};

MemPool& default_pool(Driver& driver, int ordinal);

CUresult allocate_from_pool(Driver& driver, MemPool& pool, Context& context, Stream& stream,
                            std::size_t bytes, CUdeviceptr* out);
// Frees pool or graph memory: in the order of `stream`, or at once if `stream` is null.
CUresult free_pool_memory(Driver& driver, CUdeviceptr address, Stream* stream);
// Gives unused chunks back to the GPU until at most `keep` bytes are reserved.
void trim_pool(MemPool& pool, std::uint64_t keep);
// Trims every pool of the device to its release threshold, as every synchronisation does.
void trim_pools_of(Driver& driver, int ordinal);

// Frees all memory of the device's pools, used or not: for the end of the device's last context.
void empty_pools_of(Driver& driver, int ordinal);

// Memory of graph allocation nodes. The address lives as long as the node. The first launch backs
// the address with memory, which stays after the graph has freed it, until cuDeviceGraphMemTrim.
struct GraphMemory {
  int device = -1, ordinal = 0;
  std::size_t bytes = 0, size = 0;  // requested, reserved
  std::shared_ptr<Mapping> mapping;
  unsigned runs = 0;    // launches that have allocated it and not freed it yet
  unsigned ending = 0;  // of these, launches whose free is pending
};

CUresult make_graph_memory(Driver& driver, int ordinal, std::size_t bytes, CUdeviceptr* out);
// Backs the address with memory, as an upload does.
CUresult back_graph_memory(Driver& driver, CUdeviceptr address);
CUresult provide_graph_memory(Driver& driver, Context& context, CUdeviceptr address,
                              bool frees_itself);
// Records that the free is pending in a stream: the next launch may allocate again.
void expect_graph_free(Driver& driver, CUdeviceptr address);
CUresult finish_graph_free(Driver& driver, CUdeviceptr address, bool was_expected);
void trim_graph_memory(Driver& driver, int ordinal);

}  // namespace gpurota::sim
