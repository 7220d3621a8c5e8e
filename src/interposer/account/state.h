// The share that this process has of its lease: the connection, the headroom, the contexts. The
// part of the tenant's state for account/ (driver/driver_part.h).
#pragma once

#include "abi/cuda_abi.h"
#include "abi/page.h"
#include "interposer/account/burst_pages.h"
#include "interposer/account/park_orders.h"
#include "interposer/driver/driver_part.h"
#include "interposer/os/sys.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace gpurota::interposer {

// One GPU of the lease.
struct Slot {
  std::atomic<int64_t> headroom;  // granted and not charged; below 0 only in a pool settlement
  std::atomic<int64_t> granted;   // granted by the daemon, and not given back
  alignas(64) std::atomic<uint64_t> tickets, flights[64];  // Flight (memory/reserve.h); 0: free
  // `asking`: how many refusals are under way. `freed` changes if bytes are put back meanwhile
  // (class Refusal, memory/reserve.cpp).
  std::atomic<uint32_t> asking, freed;
  std::atomic<uint64_t> allocations, refusals;
  std::atomic<uint64_t> imported;       // charged bytes of memory that another process made
  std::atomic<uint32_t> grown_seq;      // of the last GROWN whose bytes are in `granted`
  std::atomic<uint32_t> contexts;       // live contexts whose cost was reserved
  std::atomic<uint32_t> primary_maker;  // of the primary context (memory/contexts.cpp)
  // memory/pool_charge.cpp explains the units; 0: not known yet. `graph_device`: 1 + the device
  // whose graphs have memory here (memory/graph_memory.cpp).
  std::atomic<uint32_t> pool_unit_log2, graph_unit_log2;
  std::atomic<int32_t> graph_device;
  std::atomic<CUmemoryPool> current_pool;
  uint8_t uuid[GPUROTA_UUID_BYTES];
};

// The daemon's books of this process and one GPU, in a swap lease. With Swap::books_mutex held.
struct SwapBooks {
  uint64_t movable;   // granted and not returned; resident or evicted
  uint64_t out;       // the part of `movable` that the daemon knows is evicted
  uint64_t wired;     // contexts included
  uint64_t contexts;  // bytes, of `wired`
  uint64_t hosted;    // in host memory for good; not counted in any figure above
  uint64_t parked;    // evicted, not counted above: no context is left that could use it
};

// Memory that other processes may have too (holdings.h).
struct Holding {
  uint64_t bytes;
  uint32_t count;  // charges of this process for this memory
  int32_t slot;
};

struct Link {
  Mutex mutex;              // held during a call to the daemon
  VaMap<Holding> holdings;  // by key
  Socket call;
  uint32_t sequence, slot_count;
  uint64_t daemon_features;  // GPUROTA_FEATURE_…
  bool helper_started;
  bool lease_refused;           // by the daemon: the helper tries again only every 30 s
  bool crowded;                 // the daemon's last answer: the lease is at its limit of processes
  bool no_thread;               // this is a swap lease, and its worker could not be started
  int64_t away_since;           // ms; 0: not away
  std::atomic<int> next_event;  // event socket for the helper thread to take over, +1
  std::atomic<uint32_t> event_turn;  // futex: next_event has changed
  std::atomic<uint64_t> event_inode;
  std::atomic<int> event_fd;  // the helper's event socket, +1; other threads may shut it down
  Mutex recall_mutex;         // held while a RECALL is answered, and while HELLO says what is held
  uint64_t recall_inode;  // the event socket whose recalls are answered; 0: a HELLO is under way
};

struct ContextEntry {
  std::atomic<CUcontext> context;  // nullptr: free
  std::atomic<uint32_t> serial;
  std::atomic<int32_t> slot;  // -1: a GPU that is not of the lease
  CUgreenCtx green;           // the green context of which this context is the view, or nullptr
  uint32_t references;        // cuCtxAttach adds, cuCtxDetach takes away
  CUdevice device;
  std::atomic<CUcontext> aside;  // being destroyed: lookups skip it; its handle may be reused
  bool primary, charged;         // charged: counted in Slot::contexts
};

inline constexpr size_t kContexts = 256;

struct Contexts {
  Mutex mutex;
  std::atomic<uint32_t> last_serial;
  std::atomic<uint32_t> used;  // entries [0, used) have been in use
  ContextEntry entries[kContexts];
};

inline constexpr size_t kDevices = 64;

struct State : DriverPart {
  std::atomic<uint32_t> attached;
  std::atomic<gpurota_page*> page;
  std::atomic<int32_t> device_count;           // of the program; 0: not asked yet
  std::atomic<int32_t> device_slot[kDevices];  // 0: not asked, -1: not of the lease, else slot + 1
  Link link;
  Slot slots[GPUROTA_SLOTS];
  SwapBooks books[GPUROTA_SLOTS];
  Contexts contexts;
  BurstPages bursts;
  ParkOrders park_orders;

  uint64_t used(int slot, int64_t granted, int64_t headroom) const;  // as the page shows it
  void mirror(int slot);  // copies the figures of one GPU to the page, as a hint to the daemon
  void count_unhooked(const char* name);
  void mirror_unhooked();
};

inline State& state() { return static_cast<State&>(driver_part()); }

// For figures that are only shown: of two increments at the same time, one may be lost.
inline void count(std::atomic<uint64_t>* counter) {
  counter->store(counter->load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

}  // namespace gpurota::interposer
