// The state of a process as a tenant of a swap lease (docs/design/turns.md): its memory that moves,
// and its messages to the daemon. The swap room's part of the tenant's state
// (driver/driver_part.h), and so the whole of it.
//
// Three kinds of threads meet here. The program's allocate, free and stand at the gate. The helper
// (account/helper.cpp) takes the daemon's messages and calls no CUDA function. The worker
// (worker.cpp) looks what is in flight, moves memory, and is the only one that says SWAP_HERE and
// SWAP_STATUS.
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

inline constexpr uint32_t kSwapFences = 64;  // more than blocks are ever under way
inline constexpr uint32_t kSwapAsks = 512;

// The hashing kernel in a context of the program's (hasher.h).
// All zero: nothing is loaded.
struct SwapHasher {
  CUcontext context;  // where `function` is
  CUmodule module;
  CUfunction function;
  uint32_t failures;  // to load it
  char* memory;       // pinned: room for kHashSums sums, and what the kernel is tried out on
  CUdeviceptr at;     // the same, as kernels see it
};

// Memory that moves, of one GPU of the lease.
struct SwapDevice {
  SwapSpace space;
  SwapCalls calls;              // self: this device
  std::atomic<uint32_t> ready;  // `calls` can be used
  CUdevice device;
  Mutex mutex;  // over making and forgetting what follows
  CUcontext
      context;  // of the program's, in which the two below live; nullptr: none yet, or destroyed
  CUstream stream;
  CUevent events[kSwapFences];
  std::atomic<uint64_t> last_fence;
  SwapHasher hasher;              // the worker's, with contexts_mutex held
  std::atomic<uint64_t> evict;    // ordered, and not begun
  std::atomic<uint64_t> restore;  // room that was told of since the worker last looked
};

// A question for memory. Its thread owns it until it is free again.
struct SwapAsk {
  std::atomic<uint32_t> state;  // futex; kAskFree, …
  uint32_t seq;
  uint32_t slot;
  uint32_t kind;
  uint64_t bytes;
  uint64_t granted;  // as SWAP_GROWN says it
  uint32_t status;
};
inline constexpr uint32_t kAskFree = 0;
inline constexpr uint32_t kAskTaken = 1;
inline constexpr uint32_t kAskWaits = 2;
inline constexpr uint32_t kAskAnswered = 3;

// Memory that was freed in stream order: its stream may have it again at once, everybody else once
// `event` is done.
struct FreedLater {
  uint64_t address;
  uint64_t size;    // that it was allocated with
  uint64_t stream;  // key of the stream
  CUevent event;    // nullptr: freed during a capture, ends when nothing captures and all is done
  CUcontext context;
  uint32_t serial;  // of the context it dies with
  uint64_t number;  // counts what is freed later
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
  Socket socket;  // to who asks
};
inline constexpr uint32_t kSwapOpens = 64;

struct SwapShares {
  uint64_t key[2];  // set once, before anybody reads it; 0: this process shares nothing
  // Over all that follows, and held while descriptors are made, so that their memory is not freed
  // meanwhile.
  Mutex mutex;
  std::atomic<uint32_t> count;  // memory.size(), readable without the lock
  uint64_t last;
  VaMap<SharedMemory> memory;  // by address
  Mutex asked_mutex;           // over what others have asked, for the worker: the first `asked`
  SharedQuestion questions[kSwapOpens];
  uint32_t asked;
};

struct Swap : MemoryPart {
  SwapDevice devices[GPUROTA_SLOTS];
  SwapShares shares;

  // Over all down to `asks`, and held while a message that changes the books is sent.
  Mutex books_mutex;
  bool connected;  // SWAP_HERE has been said on this connection
  bool hello_due;
  int event_fd;  // + 1; the helper's
  uint64_t event_inode;
  uint32_t ask_seq;
  std::atomic<uint64_t> given_back;  // counts what gave room back, or will
  SwapAsk asks[kSwapAsks];

  std::atomic<int64_t> away_since;  // ms; 0: the daemon is there
  std::atomic<uint64_t> host_bytes;
  std::atomic<uint64_t> pinned_bytes;
  std::atomic<uint64_t> kept_bytes;  // that may be held while nothing is out; 0: not said
  std::atomic<uint32_t> copy_all;    // nothing is to be hashed
  std::atomic<uint32_t> takes_turns;  // gpurota_turns, as the daemon has told
  std::atomic<uint32_t> hash_off;  // it could not be, or came out wrong
  uint64_t hash_seed;              // of this process; the worker's

  std::atomic<uint32_t>
      drained;  // nothing is in flight, and nothing can be submitted: memory moves

  Mutex gate_mutex;                    // over who sets the gate
  bool open_wanted;                    // the daemon has ordered so
  std::atomic<uint32_t> gate_seq;      // of the last order
  std::atomic<int64_t> last_close_ms;  // when a turn was last taken away; 0: never

  bool worker_started;

  Mutex freed_mutex;
  Table<FreedLater> freed;
  std::atomic<uint32_t> freed_count;
  std::atomic<uint32_t> ends_under_way;  // threads that end what was freed
  std::atomic<uint64_t> freed_last;      // FreedLater::number
  OpenedMemory opened;
};

inline Swap& swap_of(State& s) { return static_cast<Swap&>(s); }
inline const Swap& swap_of(const State& s) { return static_cast<const Swap&>(s); }

}  // namespace gpurota::interposer
