// Memory of another process that this one has opened by a handle of ours: the opener's side of abi/wire_share.h; the
// owner's is swap/share.h. In any lease with a limit; a part of State.
//
// It is its owner's, and counts for it. Here it is mapped, at one place for a context however often it is opened.
#pragma once

#include "abi/wire.h"
#include "interposer/swap/table.h"
#include "interposer/sys.h"
#include "interposer/va_map.h"

#include <atomic>
#include <cstdint>

namespace gpurota::interposer {

struct State;

struct Opened {
  uint64_t address;  // of the allocation, as the program knows it
  uint64_t size;
  uint64_t mapped;  // where its blocks are
  uint64_t mapped_size;
  gpurota_shared_name name;
  uint32_t context;  // serial of the one it was opened in, and ends with
  uint32_t count;    // how often it was opened, less how often closed
  int32_t device;
};

struct OpenedMemory {
  Mutex mutex;
  std::atomic<uint32_t> count;  // readable without the lock
  Table<Opened> table;
  VaMap<uint32_t> pages;  // address / kPageBytes to index
};

// What `address` lies in. Any thread.
bool find_opened(State& s, uint64_t address, Opened* out);
// The context is gone, and with it what was opened there.
void end_opened_in(State& s, uint32_t serial);

}  // namespace gpurota::interposer
