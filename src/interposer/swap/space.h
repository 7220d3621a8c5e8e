// The memory of a swap tenant on one GPU: address ranges that stay for an allocation's life, and blocks of
// at most 64 MiB that back them, each in GPU memory or in host memory.
//
// Any thread allocates and frees; one thread at a time moves (mover.cpp). The mutex guards the tables and is
// never held while the driver is called: a block that is being moved says so in its state, and whoever frees it
// meanwhile leaves the rest to the mover. All-zero memory is an empty space (a forked child starts so).
//
// Whoever calls has already waited for what may still use the memory, as the driver's own free does.
#pragma once

#include "interposer/swap/driver_calls.h"
#include "interposer/swap/host_memory.h"
#include "interposer/swap/table.h"
#include "interposer/va_map.h"

#include <cstdint>

namespace gpurota::interposer {

// How finely the driver maps: every size is rounded up to it.
inline constexpr uint64_t kPageBytes = uint64_t{2} << 20;
inline constexpr uint64_t kMostBlock = uint64_t{64} << 20;
// Smaller ones share a page; as the driver does.
inline constexpr uint64_t kSmall = uint64_t{1} << 20;
inline constexpr uint64_t kGranule = 512;
inline constexpr uint32_t kGranules = static_cast<uint32_t>(kPageBytes / kGranule);

enum class BlockState : uint8_t {
  kResident,
  kOut,     // its bytes are in host memory
  kComing,  // being made, or restored: its bytes are not there yet
};

struct Block {
  uint64_t address;
  uint64_t size;
  uint64_t handle;  // 0: has no physical memory
  uint64_t token;   // of the copy that is under way
  uint32_t range;
  uint32_t next;  // of the same range; 0: last
  BlockState state;
  bool mapped;      // its physical memory is at its address
  bool moving;      // the mover has it
  bool doomed;      // freed while it was moved: the mover ends it
  bool undrained;   // a copy of it may still be under way: it failed, and so did waiting for it
  bool copy_valid;  // `host` has the same bytes as the GPU
  // changes.cpp: what is known of whether it changes.
  bool kept;  // `host` has what was last evicted, and its sums; the GPU may have other bytes by now
  bool summed;      // being evicted: the sums with `host` are of what the GPU has
  uint8_t changed;  // evictions in a row at which all of it had changed
  uint8_t unseen;   // evictions to come at which it is not looked at
  uint32_t stale;   // being evicted: which units are to be copied, a bit for each
  HostBuffer host;  // count 0: none
};

// Allocations inside a page that others share.
struct Slab {
  uint64_t used[kGranules / 64];
  uint64_t begins[kGranules / 64];
  uint32_t free;
  uint32_t next;  // with room, as far as known; 0: last
  uint64_t address;
};

struct Range {
  uint64_t address;
  uint64_t size;       // mapped
  uint64_t requested;  // what attributes tell
  uint32_t first_block;
  uint32_t blocks;  // that exist still
  bool stays;       // some of its addresses could not be unmapped: they are never given back
  uint32_t slab;    // 0: one allocation of its own
};

struct FoundRange {
  uint64_t address;
  uint64_t size;
};

class SwapSpace {
 public:
  void set_calls(const SwapCalls* calls) { calls_ = calls; }

  // All or nothing. Memory is resident when it comes; its caller has room for it (`cost`). `took`: how much
  // of that it needed; a small one may find a page with room.
  CUresult allocate(uint64_t size, uint64_t* address, uint64_t* took = nullptr);
  // A small one, in a page that others share already. False: it needs memory.
  bool allocate_shared(uint64_t size, uint64_t* address);
  // The most physical memory that an allocation of `size` takes; UINT64_MAX: more than can be.
  static uint64_t cost(uint64_t size);
  // The allocation that begins there. CUDA_ERROR_INVALID_VALUE if none does. `released` tells how much
  // GPU memory came free, `dropped` how much of what was out is gone: for the daemon's books.
  CUresult free(uint64_t address, uint64_t* released, uint64_t* dropped);
  // The allocation that `address` lies in.
  bool find(uint64_t address, FoundRange* out);

  HostMemory& host() { return host_; }
  // Before anything is hashed, and never again: sums are kept.
  void set_hash_seed(uint64_t seed) { hash_seed_ = seed; }

  uint64_t resident_bytes() const { return resident_.load(std::memory_order_relaxed); }
  uint64_t out_bytes() const { return out_.load(std::memory_order_relaxed); }
  // Physical memory that the driver would not take back: counted as resident for ever.
  uint64_t lost_bytes() const { return lost_.load(std::memory_order_relaxed); }

 private:
  friend class Mover;

  // Takes a record for each block of `range`; with the mutex held.
  bool plan_blocks(uint32_t range);
  CUresult back(uint32_t range);
  CUresult make_range(uint64_t size, uint64_t requested, uint32_t* out);
  // Ends a range that has no blocks any more.
  void end_range(uint32_t index);
  CUresult free_range(uint32_t index, uint64_t* released, uint64_t* dropped);
  CUresult allocate_small(uint64_t size, uint64_t* address, uint64_t* took);
  bool carve(uint64_t size, uint64_t* address);
  // Takes the allocation out of its slab; whether the slab is empty now.
  bool uncarve(Slab& slab, uint64_t address, bool* empty);
  // What a block has, taken out of the tables with the mutex held and ended without it.
  struct Remains {
    uint64_t address, size, handle;
    bool mapped;
    bool undrained;
    HostBuffer host;
  };
  Remains take_block(uint32_t index);
  CUresult end_block(Remains* remains, bool* address_free);
  // Waits for all copies that were begun.
  CUresult drain();
  void list_pages(const Range& range, uint32_t index);
  void unlist_pages(const Range& range);

  const SwapCalls* calls_;
  Mutex mutex_;
  Table<Block> blocks_;
  Table<Range> ranges_;
  Table<Slab> slabs_;
  VaMap<uint32_t> pages_;  // address / kPageBytes to range
  uint32_t open_slab_;     // first of those with room
  HostMemory host_;
  bool ring_in_use_;
  void* ring_;  // a pinned piece through which pageable memory is reached; the mover's
  uint64_t hash_seed_;
  uint64_t dice_;  // what is looked at twice; the mover's
  std::atomic<uint64_t> resident_;
  std::atomic<uint64_t> out_;
  std::atomic<uint64_t> lost_;
};

}  // namespace gpurota::interposer
