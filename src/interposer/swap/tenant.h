// The state of a process as a tenant of a swap lease (docs/design/turns.md): its memory that moves,
// and its messages to the daemon. The struct Swap has all parts of the state of a tenant
// (driver/driver_part.h).
//
// Three kinds of threads use this state. Threads of the program allocate, free and wait at the
// gate. The helper (account/helper.cpp) takes the daemon's messages and calls no CUDA function. The
// worker (worker.cpp) checks for work in flight, moves memory, and is the only thread that sends
// SWAP_HERE and SWAP_STATUS.
#pragma once

#include "abi/wire.h"
#include "interposer/memory/memory_part.h"
#include "interposer/os/table.h"
#include "interposer/os/va_map.h"
#include "interposer/swap/opened_memory.h"
#include "interposer/swap/space.h"

#include <atomic>
#include <cstdint>

namespace gpurota::interposer {

inline constexpr uint32_t kSwapFences = 64;  // events; the mover moves fewer blocks at a time
inline constexpr uint32_t kSwapAsks = 512;

// The hashing kernel in a context of the program's (hasher.h).
// All zero: nothing is loaded.
struct SwapHasher {
  CUcontext context;  // where `function` is
  CUmodule module;
  CUfunction function;
  uint32_t failures;  // to load it
  char* memory;       // pinned: room for kHashSums sums, and for the test of the kernel
  CUdeviceptr at;     // device address of `memory`
};

// Memory that moves, of one GPU of the lease.
struct SwapDevice {
  SwapSpace space;
  SwapCalls calls;              // self: this device
  std::atomic<uint32_t> ready;  // `calls` can be used
  CUdevice device;
  Mutex mutex;        // held to make or to forget the members below
  CUcontext context;  // the program's, for `stream` and `events`; nullptr: none yet, or destroyed
  CUstream stream;
  CUevent events[kSwapFences];
  std::atomic<uint64_t> last_fence;
  SwapHasher hasher;              // the worker's, with contexts_mutex held
  std::atomic<uint64_t> evict;    // ordered, but not begun
  std::atomic<uint64_t> restore;  // room ordered since the worker last checked
};

// A request for memory. The thread that asks owns it until the entry is free again.
struct SwapAsk {
  std::atomic<uint32_t> state;  // futex; kAskFree, …
  uint32_t seq;
  uint32_t slot;
  uint32_t kind;
  uint64_t bytes;
  uint64_t granted;  // as SWAP_GROWN says
  uint32_t status;
};
inline constexpr uint32_t kAskFree = 0;
inline constexpr uint32_t kAskTaken = 1;
inline constexpr uint32_t kAskWaits = 2;
inline constexpr uint32_t kAskAnswered = 3;

// Memory that was freed in stream order: its stream may use it again at once, others once `event`
// is done.
struct FreedLater {
  uint64_t address;
  uint64_t size;    // that it was allocated with
  uint64_t stream;  // key of the stream
  CUevent event;    // nullptr: ends when nothing captures and nothing is in flight
  CUcontext context;
  uint32_t serial;  // of the context it ends with
  uint64_t number;  // its place in the order of frees
  uint16_t pool;    // as Allocation::pool
  uint8_t slot;
};

// Memory that other processes may open (share.h).
struct SharedMemory {
  uint64_t number;
  uint8_t slot;
};
struct SharedQuestion {
  gpurota_shared_name name;
  Socket socket;  // to the process that asks
};
inline constexpr uint32_t kSwapOpens = 64;

struct SwapShares {
  uint64_t key[2];  // set once, before anybody reads it; 0: this process shares nothing
  // Guards all that follows, and is held while descriptors are made, so that their memory is not
  // freed meanwhile.
  Mutex mutex;
  std::atomic<uint32_t> count;  // memory.size(), readable without the lock
  uint64_t last;
  VaMap<SharedMemory> memory;  // by address
  Mutex asked_mutex;           // guards `questions`, of which the first `asked` are open
  SharedQuestion questions[kSwapOpens];
  uint32_t asked;
};

struct Swap : MemoryPart {
  SwapDevice devices[GPUROTA_SLOTS];
  SwapShares shares;

  // Guards all down to `asks`, and is held while a message that changes the books is sent.
  Mutex books_mutex;
  bool connected;  // SWAP_HERE has been sent on this connection
  bool hello_due;
  int event_fd;  // + 1; the helper's
  uint64_t event_inode;
  uint32_t ask_seq;
  std::atomic<uint64_t> given_back;  // counts frees that gave room back, or will
  SwapAsk asks[kSwapAsks];

  std::atomic<int64_t> away_since;  // in ms; 0: the daemon is connected
  std::atomic<uint64_t> host_bytes;
  std::atomic<uint64_t> pinned_bytes;
  // The host memory that may be held while nothing is evicted; 0: not told.
  std::atomic<uint64_t> kept_bytes;
  std::atomic<uint32_t> copy_all;     // nothing is to be hashed
  std::atomic<uint32_t> takes_turns;  // gpurota_turns, from the daemon
  std::atomic<uint32_t> hash_off;     // hashing failed, or gave wrong sums
  uint64_t hash_seed;                 // of this process; the worker's

  std::atomic<uint32_t>
      drained;  // nothing is in flight, and nothing can be submitted: memory moves

  Mutex gate_mutex;                    // held by a thread that sets the gate
  bool open_wanted;                    // the daemon has ordered the gate open
  std::atomic<uint32_t> gate_seq;      // of the last order
  std::atomic<int64_t> last_close_ms;  // when a turn was last taken away; 0: never

  bool worker_started;

  Mutex freed_mutex;
  Table<FreedLater> freed;
  std::atomic<uint32_t> freed_count;
  std::atomic<uint32_t> ends_under_way;  // threads that are ending freed memory
  std::atomic<uint64_t> freed_last;      // FreedLater::number
  OpenedMemory opened;
};

inline Swap& swap_of(State& s) { return static_cast<Swap&>(s); }
inline const Swap& swap_of(const State& s) { return static_cast<const Swap&>(s); }

}  // namespace gpurota::interposer
