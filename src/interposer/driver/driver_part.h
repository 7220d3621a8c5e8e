// Everything that belongs to this process as a tenant, and the driver room's part of it.
//
// The state of a tenant lives in one mapping that the kernel wipes in a forked child
// (MADV_WIPEONFORK), also when the fork bypasses libc. All-zero is the valid first state of every
// part: a child finds itself not attached, with all locks free, and becomes a tenant of its own at
// its first allocation. Only what is true of the program file and its environment (config, driver
// addresses) lives elsewhere.
//
// Each room has a part of it, derived from the part of the room below: DriverPart, State (account),
// GatePart, MemoryPart, Swap. A room sees its own part and those below; nothing is looked up to
// come from one to the other.
#pragma once

#include "abi/cuda_abi.h"
#include "abi/page.h"
#include "interposer/os/sys.h"
#include "interposer/os/va_map.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace gpurota::interposer {

// Driver functions that were handed out without a hook and should have one.
struct Unhooked {
  std::atomic<uint64_t> count;
  Mutex mutex;  // of what follows
  uint32_t names;
  char name[GPUROTA_PAGE_NAMES][GPUROTA_PAGE_NAME_BYTES];
};

// A stream of the program's.
struct KnownStream {
  CUcontext context;
  int32_t slot;  // below zero: of no GPU of the lease
  bool capturing;
};

// Work in a stream that cannot be asked by us: one that was destroyed before its work was done, or
// the default stream of a thread.
struct KnownEvent {
  CUevent event;  // nullptr: still to be made, when nothing captures
  CUcontext context;
  int32_t slot;
  int32_t tid;  // of whose default stream it is; 0: of a stream that is gone
};

struct KnownStreams {
  Mutex
      mutex;  // held while streams are asked: they must not be destroyed, or begin to capture, meanwhile
  std::atomic<uint32_t> captures;
  VaMap<KnownStream> streams;  // by handle
  VaMap<KnownEvent> events;    // by a hash of what it is of
};

struct DriverPart {
  int32_t pid;  // of the process this state is of, where the kernel cannot wipe
  Mutex driver_mutex;
  std::atomic<uint32_t> captures;  // begun, and not ended with success
  std::atomic<uint32_t> swaps;     // the lease is a swap lease: from the first WELCOME on, for life
  Unhooked unhooked;
  KnownStreams streams;
};

// The memory for all parts, where there is none to be mapped, and how much that is: of the room
// that knows them all.
struct SpareMemory {
  void* memory;
  size_t bytes;
};
extern const SpareMemory g_spare_memory;

extern std::atomic<DriverPart*> g_driver_part;
extern std::atomic<bool> g_check_pid;  // the kernel cannot wipe: look at the process id each time

DriverPart& find_driver_part();

// Never fails: without memory for the mapping a static one serves, checked by process id.
inline DriverPart& driver_part() {
  DriverPart* part = g_driver_part.load(std::memory_order_acquire);
  if (part != nullptr && !g_check_pid.load(std::memory_order_relaxed)) return *part;
  return find_driver_part();
}

// Whether this process is a swap tenant. In a process that is none, each launch pays two loads for
// this question.
inline bool swapping() {
  const DriverPart* part = g_driver_part.load(std::memory_order_acquire);
  return part != nullptr && part->swaps.load(std::memory_order_relaxed) != 0;
}

}  // namespace gpurota::interposer
