// Everything that belongs to this process as a tenant: the connection, the ledger, the tables.
//
// It lives in one mapping that the kernel wipes in a forked child (MADV_WIPEONFORK), also when the
// fork bypasses libc. All-zero is the valid first state of every part: a child finds itself not
// attached, with all locks free, and becomes a tenant of its own at its first allocation. Only what
// is true of the program file and its environment (config, driver addresses) lives elsewhere.
#pragma once

#include "abi/cuda_abi.h"
#include "abi/page.h"
#include "interposer/opened.h"
#include "interposer/swap/tenant.h"
#include "interposer/sys.h"
#include "interposer/va_map.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace gpurota::interposer {

// One GPU of the lease.
struct Slot {
  std::atomic<int64_t> headroom;  // granted and not charged; below 0 only in a pool settlement
  std::atomic<int64_t> granted;   // what the daemon has granted and not got back
  alignas(64) std::atomic<uint64_t> tickets, flights[64];  // flights.h; 0: a free place
  std::atomic<uint32_t> asking, freed;  // refusals under way; changes with what is put back then
  std::atomic<uint64_t> allocations, refusals;
  std::atomic<uint32_t> grown_seq;      // of the last GROWN whose bytes are in `granted`
  std::atomic<uint32_t> contexts;       // live contexts that were reserved for
  std::atomic<uint32_t> primary_maker;  // of the primary context (contexts.cpp)
  std::atomic<uint32_t> pool_unit_log2, graph_unit_log2;  // 0: not known yet (pool_charge.cpp)
  std::atomic<int32_t> graph_device;  // + 1: whose graphs have memory here (graph_memory.cpp)
  std::atomic<CUmemoryPool> current_pool;
  uint8_t uuid[GPUROTA_UUID_BYTES];
};

struct Link {
  Mutex mutex;  // held during a call to the daemon
  Socket call;
  uint32_t sequence, slot_count;
  uint64_t daemon_features;  // GPUROTA_FEATURE_…
  bool helper_started;
  bool lease_refused;                // the daemon said so: the helper no longer tries to come back
  bool crowded;                      // it said last that the lease has as many processes as it may
  int64_t away_since;                // ms; 0: not away
  std::atomic<int> next_event;       // event socket for the helper thread to take over, +1
  std::atomic<uint32_t> event_turn;  // futex: next_event has changed
  std::atomic<uint64_t> event_inode;
  std::atomic<int> event_fd;  // the helper's, +1; for others to shut down
  Mutex recall_mutex;         // held while a RECALL is answered, and while HELLO says what is held
  uint64_t recall_inode;  // the event socket whose recalls are answered; 0: a HELLO is under way
};

// A live linear or managed allocation, or one from a pool that can be destroyed.
struct Allocation {
  uint64_t size;
  uint32_t context;  // serial of the context it dies with; 0: of none
  uint16_t pool;     // index + 1 of its pool; 0: linear; kArray: an array, by its handle
  uint8_t slot;
  bool moves;  // memory of a swap lease that moves (swap/memory.h)
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

struct ContextEntry {
  std::atomic<CUcontext> context;  // nullptr: free
  std::atomic<uint32_t> serial;
  std::atomic<int32_t> slot;  // -1: a GPU that is not of the lease
  CUgreenCtx green;           // it is the view of this green context; nullptr: of none
  uint32_t references;        // cuCtxAttach adds, cuCtxDetach takes away
  CUdevice device;
  std::atomic<CUcontext> aside;  // being destroyed: not found, and perhaps another's handle
  bool primary, charged;         // charged: counted in Slot::contexts
};

inline constexpr size_t kContexts = 256;

struct Contexts {
  Mutex mutex;
  std::atomic<uint32_t> last_serial;
  std::atomic<uint32_t> used;  // entries [0, used) have been in use
  ContextEntry entries[kContexts];
};

// Physical memory made by cuMemCreate.
struct Physical {
  uint64_t size;
  uint32_t handles;   // references by handle
  uint32_t mappings;  // references by address
  int32_t slot;       // -1: not charged (host memory, imported)
  bool owns;          // a multicast object: memory is bound to it
  // Of memory that moves (swap/virtual.h).
  uint32_t traits;      // as SwapCalls::create takes them
  uint64_t home;        // where its SwapSpace has it; 0: it is the driver's
  uint64_t next_ended;  // id
};

// What a handle is of. One memory may have several, as it is retained by its address.
struct HandleRef {
  uint64_t physical;  // id
  uint32_t count;
};

struct Mapping {
  uint64_t size;
  uint64_t physical;  // id; 0: of a handle we do not know
  // Of memory that moves.
  uint64_t offset;  // in the physical memory
  uint64_t access;  // as SwapCalls::allow takes it
};

// Memory that something else holds on to: a multicast object, an array whose parts are mapped.
struct Binding {
  uint64_t owner;     // id of the multicast object's physical, or the array's handle
  uint64_t offset;    // in the owner; of an array's part, a hash of where it is
  uint64_t physical;  // id
};

struct Vmm {
  Mutex mutex;
  uint64_t last_id;
  VaMap<HandleRef> handles;
  VaMap<Physical> physicals;
  VaMap<Mapping> mappings;
  VaMap<Binding> bindings;  // by a hash of all that a binding is
  // Of memory that moves: address / kPageBytes to the key of its mapping; how many pages that is; and what
  // neither a handle nor a mapping refers to any more, the first of a list.
  VaMap<uint64_t> pages;
  std::atomic<uint64_t> page_count;
  std::atomic<uint64_t> ended;
  std::atomic<uint32_t> moving;  // how many of `physicals` are memory that moves
};

struct Pool {
  std::atomic<CUmemoryPool> pool;  // nullptr: free
  Mutex mutex;
  std::atomic<int64_t> charged;  // reserved bytes as last read and charged; changed under the lock
  std::atomic<int64_t> live;     // bytes of allocations that are tracked one by one
  // Of memory that moves (swap/pool_figures.h): what of `live` was freed and has not ended; and high-water marks.
  std::atomic<int64_t> ending, used_high, held_high;
  // The last request that the pool, with enough free memory, could not serve without growing beyond
  // what could be had, and what it had in use then: it is in pieces until that gets less.
  std::atomic<int64_t> stuck_size, stuck_in_use;
  // Counted before and after it is told to let go: who saw the same count twice has seen no memory go
  // in between (graph_memory.cpp).
  std::atomic<uint32_t> trims;
  std::atomic<int32_t> inside, asking;  // calls that may make it grow; others with its handle
  int32_t slot;
  bool tracked;  // can be destroyed: its allocations are in the pointer table
  bool stays;    // it can be given to other processes, or is managed: its memory does not move
  std::atomic<bool> destroyed;  // by the program, or about to be; set under the lock
};

inline constexpr size_t kPools = 512;

struct Pools {
  Mutex mutex;
  std::atomic<uint32_t> turn;  // changes when a Slot::current_pool may have, under the lock
  std::atomic<uint32_t> used;
  Pool entries[kPools];
};

// A graph that was made ready and has allocation nodes.
struct GraphNeed {
  int64_t bytes[GPUROTA_SLOTS];  // of its allocation nodes, each in whole 2 MiB
  uint64_t stream;               // of the last launch, in which it has its memory
  uint32_t trims;                // sum over the slots at that launch
  bool launched, foreign;        // foreign: a node is of a GPU that is not of the lease
};

struct Graphs {
  Mutex mutex;
  std::atomic<uint64_t> with_memory;  // execs.size(), readable without the lock
  VaMap<GraphNeed> execs;
};

inline constexpr size_t kDevices = 64;

// Driver functions that were handed out without a hook and should have one.
struct Unhooked {
  std::atomic<uint64_t> count;
  Mutex mutex;  // of what follows
  uint32_t names;
  char name[GPUROTA_PAGE_NAMES][GPUROTA_PAGE_NAME_BYTES];
};

struct State {
  int32_t pid;  // of the process this state is of, where the kernel cannot wipe
  Mutex driver_mutex;
  std::atomic<uint32_t> attached, captures;  // captures: begun, and not ended with success
  Unhooked unhooked;
  std::atomic<gpurota_page*> page;
  std::atomic<int32_t> device_count;           // of the program; 0: not asked yet
  std::atomic<int32_t> device_slot[kDevices];  // 0: not asked, -1: not of the lease, else slot + 1
  Link link;
  Slot slots[GPUROTA_SLOTS];
  PointerShard pointers[kShards];
  BlockShard blocks[kShards];
  Contexts contexts;
  Vmm vmm;
  Pools pools;
  Graphs graphs;
  Swap swap;
  OpenedMemory opened;

  uint64_t used(int slot, int64_t granted, int64_t headroom) const;  // as the page shows it
  void mirror(int slot);  // shows the ledger of one GPU in the page; a hint
  void count_unhooked(const char* name);
  void mirror_unhooked();
};

extern std::atomic<State*> g_state;
extern std::atomic<bool> g_check_pid;  // the kernel cannot wipe: look at the process id each time

State& find_state();

// Never fails: without memory for the mapping a static one serves, checked by process id.
inline State& state() {
  State* s = g_state.load(std::memory_order_acquire);
  if (s != nullptr && !g_check_pid.load(std::memory_order_relaxed)) return *s;
  return find_state();
}

// For figures that are only shown: an increment that another thread's overtakes may be lost.
inline void count(std::atomic<uint64_t>* counter) {
  counter->store(counter->load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

}  // namespace gpurota::interposer
