// Small allocations that share pages, as in the driver, and the parts of each page that are in use.
// Not locked: the caller holds the space's mutex (space.h). All-zero memory has no slabs.
#pragma once

#include "interposer/driver/page_bytes.h"
#include "interposer/os/table.h"

#include <cstdint>

namespace gpurota::interposer {

inline constexpr uint64_t kGranule = 512;
inline constexpr uint32_t kGranules = static_cast<uint32_t>(kPageBytes / kGranule);

struct FoundRange {
  uint64_t address;
  uint64_t size;
};

class Slabs {
 public:
  // Adds an empty page, and returns its slab. 0: no memory for the entry.
  uint32_t add(uint64_t page);
  // Removes a slab that is empty.
  void remove(uint32_t slab);
  // Takes a part of any page with room. False: no page has room.
  bool carve(uint64_t size, uint64_t* address);
  // Gives a part back. False: no allocation of the slab begins there. `empty`: the slab has no
  // allocation any more.
  bool uncarve(uint32_t slab, uint64_t address, bool* empty);
  // Finds the allocation that `address`, in the slab's page, lies in; its size is in whole
  // granules.
  bool find(uint32_t slab, uint64_t address, FoundRange* out);

 private:
  struct Slab {
    uint64_t used[kGranules / 64];
    uint64_t begins[kGranules / 64];
    uint32_t free;
    uint32_t next;  // 0: last
    uint64_t page;
  };

  Table<Slab> slabs_;
  uint32_t first_;
};

}  // namespace gpurota::interposer
