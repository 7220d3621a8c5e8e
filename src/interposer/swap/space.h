// The memory of a swap tenant on one GPU: address ranges that stay for an allocation's life, and
// blocks of at most 64 MiB that back them, each in GPU memory or in host memory.
//
// Any thread allocates and frees; one thread at a time moves (mover.cpp). The mutex guards the
// tables and is never held while the driver is called. A block that is being moved is marked so,
// and a thread that frees such a block leaves its end to the mover. All-zero memory is an empty
// space (a forked child starts so).
//
// A caller of free() must first wait for all work that may still use the memory, as the driver's
// own free does.
#pragma once

#include "interposer/os/table.h"
#include "interposer/os/thread_pool.h"
#include "interposer/os/va_map.h"
#include "interposer/swap/alias_table.h"
#include "interposer/swap/bounce_buffers.h"
#include "interposer/swap/driver_calls.h"
#include "interposer/swap/host_memory.h"
#include "interposer/swap/slabs.h"

#include <cstdint>

namespace gpurota::interposer {

inline constexpr uint64_t kMostBlock = uint64_t{64} << 20;
// Smaller allocations share pages, as in the driver.
inline constexpr uint64_t kSmall = uint64_t{1} << 20;

enum class BlockState : uint8_t {
  kResident,
  kOut,     // its bytes are in host memory
  kComing,  // being made or restored: its bytes are not in GPU memory yet
};

struct Block {
  uint64_t address;
  uint64_t size;
  uint64_t handle;  // 0: has no physical memory
  uint64_t token;   // of the copy that is under way
  uint32_t range;
  uint32_t next;  // of the same range; 0: last
  BlockState state;
  bool mapped;      // its physical memory is mapped at `address`
  bool moving;      // the mover is moving it
  bool doomed;      // freed while being moved: the mover ends it
  bool undrained;   // a copy may still be under way: it failed, and so did the wait for it
  bool copy_valid;  // `host` has the same bytes as the GPU
  // For changes.cpp: how much the block changes.
  bool kept;    // `host` has the bytes of the last eviction and their sums; the GPU's may differ
  bool summed;  // being evicted: the sums stored with `host` were computed from the GPU's bytes
  uint8_t changed;  // evictions in a row at which every part had changed
  uint8_t unseen;   // how many of the next evictions go without hashing
  uint32_t stale;   // being evicted: the units to copy, a bit for each
  bool wired;       // another process or device may use it: never evicted
  bool hosted;      // in host memory for good, and always resident
  uint32_t first_alias;
  HostBuffer host;  // count 0: none
  uint8_t bounce;   // being moved: its bounce buffers, a bit for each
};

struct Range {
  uint64_t address;
  uint64_t size;       // mapped
  uint64_t requested;  // what attributes tell
  uint64_t hosted;     // bytes at its end that are in host memory for good
  uint32_t traits;     // of its physical memory
  uint32_t first_block;
  uint32_t blocks;  // that still exist
  bool stays;       // some addresses could not be unmapped: never given back
  uint32_t slab;    // 0: one allocation of its own
};

// The bytes that a free released, for the daemon's books.
struct SwapFreed {
  uint64_t released;  // of memory that moves
  uint64_t dropped;   // of `released`, what was evicted
  uint64_t wired;     // of GPU memory that was wired
  uint64_t hosted;    // of memory that was in host memory for good
};

// How an allocation is backed: all blocks but the last are of kMostBlock.
struct SwapBacking {
  uint64_t address;
  uint64_t size;
  uint64_t movable;  // bytes that move
  uint64_t hosted;   // bytes in host memory for good
  uint32_t blocks;
};

class SwapSpace {
 public:
  void set_calls(const SwapCalls* calls) {
    calls_ = calls;
    aliases_.set_calls(calls);
  }

  // Allocates all or nothing. The memory is resident at first. The caller must have been granted
  // room for the memory (cost()); `hosted` bytes of the room, in whole pages, are in host memory.
  // `took`: how much of the room was needed; a small allocation that finds a page with room needs
  // none.
  CUresult allocate(uint64_t size, uint64_t* address, uint64_t* took = nullptr,
                    uint64_t hosted = 0);
  // Allocates a small piece of memory in a page that other allocations share already. False: no
  // such page has room.
  bool allocate_shared(uint64_t size, uint64_t* address);
  // The most physical memory that an allocation of `size` takes; UINT64_MAX: no allocation can be
  // so large.
  static uint64_t cost(uint64_t size);
  // Frees the allocation that begins at `address`. CUDA_ERROR_INVALID_VALUE: none does.
  CUresult free(uint64_t address, SwapFreed* freed);
  // Finds the allocation that `address` lies in.
  bool find(uint64_t address, FoundRange* out);

  // Allocates memory that the program maps itself. `home` is our own address of the memory, which
  // the program never learns (alias_table.h). `size` is in whole pages, all in host memory with
  // kHosted. free() ends the memory, which must have no aliases then.
  CUresult allocate_pages(uint64_t size, uint32_t traits, uint64_t* home);
  // Maps [offset, offset + size) of the memory of `home` at `address`, too. The memory must be
  // resident: the caller is inside the gate.
  CUresult map_alias(uint64_t home, uint64_t offset, uint64_t address, uint64_t size);
  // Unmaps an alias, at any time. After an error some of it is still mapped, and the call can be
  // repeated.
  CUresult unmap_alias(uint64_t home, uint64_t offset, uint64_t address, uint64_t size);
  // Notes the access that the driver has allowed at `address`: the bits in `mask` are now those of
  // `value`.
  void note_access(uint64_t home, uint64_t offset, uint64_t address, uint64_t size, uint64_t mask,
                   uint64_t value);

  // Finds the memory that `address` lies in, with all that shares its pages.
  bool find_backing(uint64_t address, SwapBacking* out);
  // Wires the memory that shares pages with `address`: it never moves again, but still counts in
  // resident_bytes(). Returns how many bytes were not wired before. Inside the gate.
  uint64_t wire(uint64_t address);
  // Writes the driver's handles of at most `most` blocks, beginning with `first`, and returns how
  // many. The handles are valid until the memory is freed or, if it is not wired, moved.
  uint32_t handles(uint64_t address, uint32_t first, uint32_t most, uint64_t* out);

  HostMemory& host() { return host_; }
  // Like HostMemory::lose_pins(), but also for all other memory that the mover has pinned. Only
  // while nothing is moved.
  void lose_pins() {
    host_.lose_pins();
    bounce_.lose_pins();
    check_.lost_pin = check_.memory != nullptr;
  }
  // Call once, before anything is hashed: kept sums are compared with new ones.
  void set_hash_seed(uint64_t seed) { hash_seed_ = seed; }

  uint64_t resident_bytes() const { return resident_.load(std::memory_order_relaxed); }
  uint64_t hosted_bytes() const { return hosted_.load(std::memory_order_relaxed); }
  uint64_t out_bytes() const { return out_.load(std::memory_order_relaxed); }
  // Memory that the program freed while the mover was moving it. The mover ends this memory. Then
  // the mover's caller tells the daemon, and after that calls ended().
  uint64_t ending_bytes() const { return ending_.load(); }
  void ended(uint64_t bytes) { ending_.fetch_sub(bytes); }
  // Physical memory that the driver would not take back: counted as resident for ever.
  uint64_t lost_bytes() const { return lost_.load(std::memory_order_relaxed); }

 private:
  friend class Mover;

  // Takes a record for each block of `range`; with the mutex held.
  bool plan_blocks(uint32_t range);
  // With the mutex held. nullptr: the address is not ours.
  Range* range_of(uint64_t address);
  CUresult back(uint32_t range);
  CUresult make_range(uint64_t size, uint64_t requested, uint64_t hosted, uint32_t traits,
                      uint32_t* out);
  // Ends a range that has no blocks any more.
  void end_range(uint32_t index);
  CUresult free_range(uint32_t index, SwapFreed* freed);
  CUresult allocate_small(uint64_t size, uint64_t hosted, uint64_t* address, uint64_t* took);
  // The resources of a block that ends: taken out of the tables with the mutex held, and released
  // without the mutex.
  struct Remains {
    uint64_t address, size, handle;
    uint32_t first_alias;
    bool mapped;
    bool undrained;
    bool hosted;
    HostBuffer host;
  };
  Remains take_block(uint32_t index);
  CUresult end_block(Remains* remains, bool* address_free);
  // The block of `home` with this offset; 0: none.
  uint32_t block_at(uint64_t home, uint64_t offset);
  CUresult unmap_aliases(uint64_t home, uint64_t offset, uint64_t address, uint64_t size,
                         bool may_stay);
  void list_pages(const Range& range, uint32_t index);
  void unlist_pages(const Range& range);

  const SwapCalls* calls_;
  Mutex mutex_;
  Table<Block> blocks_;
  Table<Range> ranges_;
  Slabs slabs_;
  VaMap<uint32_t> pages_;  // address / kPageBytes to range
  AliasTable aliases_;     // its mutex also guards Block::first_alias, and is taken before mutex_
  HostMemory host_;
  BounceBuffers bounce_;
  PinnedPiece check_;       // in which the mover checks the GPU's sums
  uint64_t pageable_owed_;  // bytes still to be evicted to pageable memory
  ThreadPool copiers_;      // between bounce buffers and pageable memory, while a move lasts
  uint64_t hash_seed_;
  uint64_t dice_;  // random state that chooses the sums to check; the mover's
  std::atomic<uint64_t> resident_;
  std::atomic<uint64_t> hosted_;
  std::atomic<uint64_t> out_;
  std::atomic<uint64_t> lost_;
  std::atomic<uint64_t> ending_;
};

}  // namespace gpurota::interposer
