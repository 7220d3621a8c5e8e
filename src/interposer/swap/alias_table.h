// Where else than at our own address the blocks of memory that the program maps itself are mapped:
// a list for each block, which begins at an index that the block has. All-zero memory is an empty
// table.
//
// The program unmaps one at any time, also while the mover has its block. So the table's
// mutex is held while the driver maps and unmaps them, and whenever the beginning of a list is
// read. The table's mutex is taken before that of the space (space.h).
//
// Whatever copies a block uses the address that we keep it at, so a block that is mapped nowhere,
// in part, or without access can be moved like any other.
#pragma once

#include "interposer/os/sys.h"
#include "interposer/os/table.h"
#include "interposer/swap/driver_calls.h"

#include <cstdint>

namespace gpurota::interposer {

// An address of the program's at which a block's memory is mapped too, or a part of it: it comes
// and goes with the block.
struct Alias {
  uint64_t address;
  uint64_t size;
  uint64_t offset;  // in the block
  uint64_t access;  // as SwapCalls::allow takes it
  uint32_t next;    // of the same block; 0: last
  bool mapped;      // at the driver
  bool stale;       // the program never got it, and it could not be unmapped: not mapped again
};

class AliasTable {
 public:
  void set_calls(const SwapCalls* calls) { calls_ = calls; }
  Mutex& mutex() { return mutex_; }

  // With the mutex held. `first`: where the block's list begins.

  // Maps a part of the block's memory there.
  CUresult add(uint32_t* first, const Alias& alias, uint64_t handle);
  // Unmaps what was mapped at this address, if anything was. `may_stay`: what cannot be unmapped is
  // left to a later time.
  CUresult remove(uint32_t* first, uint64_t address, bool may_stay);
  // Notes the access that the driver has allowed there: `value` of the bits of `mask`.
  void note_access(uint32_t first, uint64_t address, uint64_t mask, uint64_t value);

  // These take the mutex.

  // Takes them away from the driver. `untouched`: set to false as soon as one is gone.
  CUresult hide(const uint32_t* first, bool* untouched);
  // Brings them back, of a block whose memory is `handle`.
  CUresult show(const uint32_t* first, uint64_t handle);
  // Of a block that nobody finds any more: what could not be unmapped before.
  CUresult end(uint32_t first);

 private:
  const SwapCalls* calls_;
  Mutex mutex_;
  Table<Alias> aliases_;
};

}  // namespace gpurota::interposer
