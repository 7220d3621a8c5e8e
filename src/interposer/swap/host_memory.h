// The host memory for evicted blocks: regions of 32 MiB, pinned one by one (a larger piece stalls
// the program's launches for tens of milliseconds), given out in units of 2 MiB.
//
// Regions are made ahead of need by prepare() and never unpinned while they may be needed again.
// When pinning fails, or would exceed what may be pinned, a region stays pageable, and its copies
// go through bounce buffers (copies.cpp). Any thread, as any thread of the program may free an
// evicted block.
#pragma once

#include "interposer/os/table.h"
#include "interposer/swap/driver_calls.h"

#include <cstdint>

namespace gpurota::interposer {

inline constexpr uint64_t kUnitBytes = uint64_t{2} << 20;
inline constexpr uint32_t kUnitsPerRegion = 16;
inline constexpr uint64_t kRegionBytes = kUnitBytes * kUnitsPerRegion;

// Consecutive units of one region.
struct HostExtent {
  uint32_t region;
  uint16_t first;
  uint16_t count;
};

// The most extents of one block: 64 MiB in single units.
inline constexpr uint32_t kExtents = 32;

struct HostBuffer {
  uint32_t count;
  HostExtent extents[kExtents];
};

class HostMemory {
 public:
  // `budget`: bytes that may be allocated; `pinned`: bytes of these that may be pinned.
  void set_limits(const SwapCalls* calls, uint64_t budget, uint64_t pinned);

  // Takes units for `bytes` (at most 64 MiB), pinned units first. With `pageable`, takes only
  // pageable units; if these cannot be enough, takes units as without `pageable`. False: the budget
  // is used up, or the system has no more memory.
  bool take(uint64_t bytes, HostBuffer* out, bool pageable = false);
  void give_back(HostBuffer* buffer);

  // Maps the memory of the next region, which takes longer than making the region. For the worker's
  // thread only, like the functions that make regions.
  void touch_next();
  // Makes one more region if fewer than `bytes` are free. True: a region was made; call again when
  // there is time.
  bool prepare(uint64_t bytes);
  // Returns empty regions to the system, as long as at least `keep` bytes stay free.
  void trim(uint64_t keep);

  // The context in which regions were pinned is gone: the driver has unpinned these regions, even
  // those pinned as portable memory.
  void lose_pins();
  // Tries to pin one region that has lost its pin, or that holds an evicted block and was made when
  // the limit had no room for it. Each region is tried once. False: there is none, or the limit has
  // no room for it.
  bool pin_more();
  // Counts memory that was pinned for other purposes: so much less may be pinned here from now on.
  void count_pinned(uint64_t bytes);

  char* address(const HostExtent& extent);
  bool pinned(const HostExtent& extent);
  // The sum of a unit's contents, kept with the unit for the owner of the extent.
  HashSum sum(const HostExtent& extent, uint32_t unit);
  void set_sum(const HostExtent& extent, uint32_t unit, const HashSum& sum);

  uint64_t total_bytes();
  uint64_t free_bytes();
  uint64_t pinned_bytes();
  uint64_t pinned_limit();

 private:
  struct Region {
    char* memory;
    uint32_t used;  // a bit for each unit
    bool pinned, lost_pin;
    bool refused;  // the driver did not pin it
    HashSum sums[kUnitsPerRegion];
  };

  bool add_region(bool hurry, bool pageable);
  bool take_free(uint64_t units, HostBuffer* out, bool pageable);
  void take_units(Region& region, uint32_t index, uint32_t first, uint32_t count, HostBuffer* out);
  // The first run of at least `most` free units, or the longest there is; 0: none.
  static uint32_t find_run(const Region& region, uint32_t most, uint32_t* first);

  const SwapCalls* calls_;
  Mutex mutex_;  // not held while the driver is called
  uint64_t budget_;
  uint64_t pinned_limit_;
  uint64_t total_;
  uint64_t free_;
  uint64_t pinned_now_;
  uint64_t pinned_elsewhere_;
  Table<Region> regions_;
  void* spare_;  // of the next region; nullptr: none
};

}  // namespace gpurota::interposer
