// The state of this process as a tenant, and the part of the state for driver/.
//
// The state of a tenant lives in one mapping that the kernel wipes in a forked child
// (MADV_WIPEONFORK), even when the fork bypasses libc. All-zero is the valid first state of every
// part: a child finds itself not attached, with all locks free, and becomes a tenant of its own at
// its first allocation. Only what is true of the program file and its environment (config, driver
// addresses) lives elsewhere.
//
// Each folder has a part of the state, derived from the part of the folder below it: DriverPart,
// State (account), GatePart, MemoryPart, Swap. Code in a folder uses that folder's part and those
// below. A cast leads from one part to another; no lookup is needed.
#pragma once

#include "abi/cuda_abi.h"
#include "abi/page.h"
#include "interposer/driver/parking.h"
#include "interposer/os/sys.h"
#include "interposer/os/va_map.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace gpurota::interposer {

// Driver functions that lookups returned without a hook, and that should have one.
struct Unhooked {
  std::atomic<uint64_t> count;
  Mutex mutex;  // guards the names
  uint32_t names;
  char name[GPUROTA_PAGE_NAMES][GPUROTA_PAGE_NAME_BYTES];
};

struct KnownStream {
  CUcontext context;
  int32_t slot;  // below zero: not on a GPU of the lease
  bool capturing;
};

// Work in a stream that we cannot query: a stream that was destroyed before its work was done, or
// the default stream of a thread.
struct KnownEvent {
  CUevent event;  // nullptr: not made yet, because something captures
  CUcontext context;
  int32_t slot;
  int32_t tid;  // the thread whose default stream it is; 0: the stream was destroyed
};

struct KnownStreams {
  // Held while streams are queried: no stream may be destroyed, or begin to capture, meanwhile.
  Mutex mutex;
  std::atomic<uint32_t> captures;
  VaMap<KnownStream> streams;  // by handle
  VaMap<KnownEvent> events;    // by handle, key_of_stream() or key_of_unmarked()
};

// Why the program's submissions stop at the gate: bits of DriverPart::roles.
inline constexpr uint32_t kSwaps = 1;  // a swap lease; set by the first WELCOME, for life
// Latency classes (gate/latency.h); set and cleared by the helper thread.
inline constexpr uint32_t kMarksBursts = 2;  // of an interactive lease
inline constexpr uint32_t kHoldsBack = 4;    // beside an interactive lease
// Submits work in windows of the GPU's compute time (gate/windows.h); set and cleared by the helper
// thread, like the latency classes.
inline constexpr uint32_t kTakesWindows = 8;

struct DriverPart {
  int32_t pid;  // the process that owns this state; used only where the kernel cannot wipe
  Mutex driver_mutex;
  std::atomic<uint32_t> captures;  // begun or attempted, less those that ended
  std::atomic<uint32_t> roles;     // kSwaps and the like; 0: submissions do not stop
  Unhooked unhooked;
  KnownStreams streams;
  Parking parking;
};

// Static memory for all parts, used where no memory can be mapped. Defined by swap/, which knows
// all parts.
struct SpareMemory {
  void* memory;
  size_t bytes;
};
extern const SpareMemory g_spare_memory;

extern std::atomic<DriverPart*> g_driver_part;
extern std::atomic<bool> g_check_pid;  // the kernel cannot wipe: compare the process id each time

DriverPart& find_driver_part();

// Never fails: if no memory can be mapped, static memory is used instead, and each call compares
// the process id, because the kernel does not wipe static memory in a forked child.
inline DriverPart& driver_part() {
  DriverPart* part = g_driver_part.load(std::memory_order_acquire);
  if (part != nullptr && !g_check_pid.load(std::memory_order_relaxed)) return *part;
  return find_driver_part();
}

// The roles of this process. A process without any pays two loads for this question at each launch.
inline uint32_t roles() {
  const DriverPart* part = g_driver_part.load(std::memory_order_acquire);
  return part != nullptr ? part->roles.load(std::memory_order_relaxed) : 0;
}

// Whether this process is a swap tenant.
inline bool swapping() { return (roles() & kSwaps) != 0; }

// Makes `call()`, a call of one of the functions that a parked process must not make (parking.h).
// While the process is parked, the answer is that all work has ended. Without `may_answer` the call
// waits until the process runs again.
template <typename Call>
CUresult ask_driver(Call call, bool may_answer = true) {
  if (g_driver_part.load(std::memory_order_acquire) == nullptr) return call();
  DriverPart& part = driver_part();
  ParkMark* const mark = part.parking.enter(may_answer, part.captures);
  if (mark == nullptr) return CUDA_SUCCESS;
  const CUresult result = call();
  part.parking.leave(mark);
  return result;
}

// Makes `call()`; once it has succeeded, the process cannot be parked (parking.h). While the
// process is parked, the call waits, as without `may_answer`, because the driver does not survive
// being parked while such a call is under way.
template <typename Call>
CUresult ask_obstacle(uint32_t obstacle, Call call) {
  return ask_driver(
      [&] {
        const CUresult result = call();
        if (result == CUDA_SUCCESS) driver_part().parking.obstacles.fetch_or(obstacle);
        return result;
      },
      false);
}

}  // namespace gpurota::interposer
