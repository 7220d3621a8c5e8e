// All that this process has allocated: the part of the tenant's state for memory/
// (driver/driver_part.h).
#pragma once

#include "abi/cuda_abi.h"
#include "interposer/gate/gate_part.h"
#include "interposer/os/sys.h"
#include "interposer/os/va_map.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace gpurota::interposer {

// A live linear or managed allocation, or one from a pool that can be destroyed.
struct Allocation {
  uint64_t size;
  uint32_t context;  // serial of the context that it ends with; 0: none
  uint16_t pool;     // index + 1 of its pool; 0: linear; kArray: an array: the key is its handle
  uint8_t slot;
  bool moves;  // memory of a swap lease that moves (swap/swap_allocate.h)
};

inline constexpr uint16_t kArray = 0xffff;

inline constexpr size_t kShards = 16;

struct PointerShard {
  Mutex mutex;
  std::atomic<uint64_t> live;  // map.size(), readable without the lock
  VaMap<Allocation> map;
};

// How many allocations share a 2 MiB block of addresses (linear.cpp).
struct BlockShard {
  Mutex mutex;
  VaMap<uint32_t> map;
};

enum class ImportKind : uint8_t {
  kNone,
  kCharged,
  kJoined,  // the lease is charged for it, and this process is not
};

// Memory of another process that this one has: by address if it was opened by an IPC handle or
// imported from a pool, by handle if it is external memory.
struct Import {
  uint64_t key;      // 0: not known
  uint64_t bytes;    // 0: not on a GPU of the lease
  uint32_t context;  // serial of the context that it ends with; 0: none
  uint32_t opens;
  int16_t slot;
  ImportKind kind;
};

// Memory of this process that others may have, by address.
struct Export {
  uint64_t key;
  uint64_t bytes;
  uint32_t context;
  int32_t slot;
};

struct Shared {
  Mutex mutex;
  std::atomic<uint32_t> imports, exports;  // how many, readable without the lock
  VaMap<Import> imported;
  VaMap<Export> exported;
};

// Physical memory made by cuMemCreate.
struct Physical {
  uint64_t size;
  uint32_t handles;     // references by handle
  uint32_t mappings;    // references by address
  int32_t slot;         // -1: not charged (host memory, imported)
  bool owns;            // a multicast object: memory is bound to it
  ImportKind imported;  // from a descriptor
  uint64_t key;         // names the memory for other processes; 0: none
  // Of memory that moves (swap/virtual_memory.h).
  uint32_t traits;      // as SwapCalls::create takes them
  uint64_t home;        // its address in the SwapSpace; 0: memory that does not move
  uint64_t next_ended;  // id
};

// The memory that a handle refers to. The same memory may have several handles, because memory can
// be retained by address.
struct HandleRef {
  uint64_t physical;  // id
  uint32_t count;
};

struct Mapping {
  uint64_t size;
  uint64_t physical;  // id; 0: the handle is not known
  // Of memory that moves.
  uint64_t offset;  // in the physical memory
  uint64_t access;  // as SwapCalls::allow takes it
};

// Memory that an owner keeps alive: a multicast object, or an array whose parts are mapped.
struct Binding {
  uint64_t owner;     // id of the multicast object's physical, or the array's handle
  uint64_t offset;    // in the multicast object; for an array, a hash that identifies the part
  uint64_t physical;  // id
};

struct Vmm {
  Mutex mutex;
  uint64_t last_id;
  VaMap<HandleRef> handles;
  VaMap<Physical> physicals;
  VaMap<Mapping> mappings;
  VaMap<Binding> bindings;  // by a hash of the whole binding
  // Of memory that moves. `pages`: from address / kPageBytes to the key of the mapping.
  // `page_count`: pages.size(), readable without the lock. `ended`: the first of a list of memory
  // to which neither a handle nor a mapping refers any more.
  VaMap<uint64_t> pages;
  std::atomic<uint64_t> page_count;
  std::atomic<uint64_t> ended;
  std::atomic<uint64_t> ended_shared;  // like `ended`, for memory that other processes may have
  std::atomic<uint32_t> moving;        // how many of `physicals` are memory that moves
};

struct Pool {
  std::atomic<CUmemoryPool> pool;  // nullptr: free
  Mutex mutex;
  std::atomic<int64_t> charged;  // reserved bytes as last read and charged; changed under the lock
  std::atomic<int64_t> live;     // bytes of allocations that are tracked one by one
  // Of memory that moves (pool_figures.h). `ending`: the part of `live` that was freed and has not
  // ended. `used_high` and `held_high` are high-water marks.
  std::atomic<int64_t> ending, used_high, held_high;
  // The last request that failed because the pool is fragmented: the size of the request, and the
  // pool's bytes in use at that time. The pool had enough free memory for the request, but not in
  // one range, and could not grow. Requests of at least this size are assumed to fail again until
  // fewer bytes are in use.
  std::atomic<int64_t> stuck_size, stuck_in_use;
  // Incremented before and after each trim: a thread that has seen the same count twice knows that
  // no memory was released in between (graph_memory.cpp).
  std::atomic<uint32_t> trims;
  std::atomic<int32_t> inside, asking;  // calls that may grow the pool; other calls that use it
  int32_t slot;
  bool tracked;                 // can be destroyed: its allocations are in the pointer table
  bool stays;                   // can be exported, or is managed: its memory does not move
  std::atomic<bool> destroyed;  // by the program, or about to be; set under the lock
};

inline constexpr size_t kPools = 512;

struct Pools {
  Mutex mutex;
  std::atomic<uint32_t> turn;  // changes when a Slot::current_pool may change, under the lock
  std::atomic<uint32_t> used;
  Pool entries[kPools];
};

// An instantiated graph that has allocation nodes.
struct GraphNeed {
  int64_t bytes[GPUROTA_SLOTS];  // of its allocation nodes, each in whole 2 MiB
  uint64_t stream;               // of the last launch; has the graph's memory
  uint32_t trims;                // sum over the slots at that launch
  bool launched, foreign;        // foreign: a node's GPU is not in the lease
};

struct Graphs {
  Mutex mutex;
  std::atomic<uint64_t> with_memory;  // execs.size(), readable without the lock
  VaMap<GraphNeed> execs;
};

struct MemoryPart : GatePart {
  PointerShard pointers[kShards];
  BlockShard blocks[kShards];
  Vmm vmm;
  Pools pools;
  Graphs graphs;
  Shared shared;
};

inline MemoryPart& memory_of(State& s) { return static_cast<MemoryPart&>(s); }
inline const MemoryPart& memory_of(const State& s) { return static_cast<const MemoryPart&>(s); }

}  // namespace gpurota::interposer
