// Allocations that share a page, as the driver's small ones do: which parts of a page are whose.
// Not locked; the space's mutex is over it (space.h). All-zero memory has none.
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
  // A page that is empty: its slab; 0: there is no memory for one.
  uint32_t add(uint64_t page);
  // Which has nothing in it any more.
  void remove(uint32_t slab);
  // A part of any page with room. False: none has.
  bool carve(uint64_t size, uint64_t* address);
  // False: no allocation of the slab begins there. `empty`: the slab has none any more.
  bool uncarve(uint32_t slab, uint64_t address, bool* empty);
  // The allocation that `address`, in the slab's page, lies in; in whole granules.
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
