// The pages by which processes of interactive leases say when they have work on the GPU
// (abi/wire_latency.h): this process's own page, and those of others that this process reads.
//
// Each page has an address that never changes, so a thread may read or wait there at any time. A
// page that no longer counts is replaced by a page of zeros, which says that there is no work. The
// helper thread maps pages; any thread reads them.
#pragma once

#include "abi/page.h"
#include "abi/wire.h"
#include "interposer/os/socket.h"
#include "interposer/os/sys.h"

#include <atomic>
#include <cstdint>

namespace gpurota::interposer {

struct State;

struct BurstPages {
  std::atomic<unsigned char*> memory;    // nullptr: no page was ever mapped
  std::atomic<uint32_t> held_for;        // a bit for each page of another process that counts
  std::atomic<uint32_t> budget;          // gpurota_msg_hold::budget
  uint64_t tenants[GPUROTA_MOST_HOLDS];  // of the pages in `held_for`; helper thread only

  // The word of this process, and of the other process with this index. Not before a page was
  // mapped.
  std::atomic<uint32_t>* own() const { return word(0); }
  const std::atomic<uint32_t>* other(uint32_t index) const { return word(1 + index); }

 private:
  std::atomic<uint32_t>* word(uint32_t page) const {
    return reinterpret_cast<std::atomic<uint32_t>*>(memory.load(std::memory_order_acquire) +
                                                    page * GPUROTA_PAGE_BYTES);
  }
};

// For the helper thread: handles a message of abi/wire_latency.h, WINDOWS included. False: the
// connection is to be given up. A message of another type is left alone.
bool take_burst_message(State& s, const Socket& event, const void* packet, long size,
                        Descriptors* fds);

// For the helper thread, on a new connection: no page and no windows of the previous connection
// count any more.
void forget_burst_pages(State& s);

}  // namespace gpurota::interposer
