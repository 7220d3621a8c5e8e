// The table of the memory of other processes that this one has opened (opened.h).
#pragma once

#include "abi/wire.h"
#include "interposer/memory/memory_part.h"
#include "interposer/os/sys.h"
#include "interposer/os/table.h"
#include "interposer/os/va_map.h"

#include <atomic>
#include <cstdint>

namespace gpurota::interposer {

struct Opened {
  uint64_t address;  // of the allocation, as the program sees it
  uint64_t size;
  uint64_t mapped;  // where its blocks are
  uint64_t mapped_size;
  gpurota_shared_name name;
  uint32_t context;  // serial of the context it was opened in and ends with
  uint32_t count;    // how many times it was opened, less the times it was closed
  int32_t device;
  Import charge;  // charged here: all, unless a process of the same lease owns it
};

struct OpenedMemory {
  Mutex mutex;
  std::atomic<uint32_t> count;  // readable without the lock
  Table<Opened> table;
  VaMap<uint32_t> pages;  // address / kPageBytes to index
};

}  // namespace gpurota::interposer
