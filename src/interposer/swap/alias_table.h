// The aliases of memory that the program maps itself: the addresses at which a block is mapped
// besides our own address. Each block has a list of aliases, and stores the index of the first one.
// All-zero memory is an empty table.
//
// The program may unmap an alias at any time, even while the mover has its block. So the table's
// mutex is held while the driver maps and unmaps aliases, and whenever the first index of a list is
// read. The table's mutex is taken before the mutex of the space (space.h).
//
// Copies of a block use our own address for it, so a block that the program has mapped nowhere, in
// part, or without access can be moved like any other.
#pragma once

#include "interposer/os/sys.h"
#include "interposer/os/table.h"
#include "interposer/swap/driver_calls.h"

#include <cstdint>

namespace gpurota::interposer {

// An address of the program's at which a block's memory, or a part of it, is mapped too. The
// mapping is removed when the block is evicted, and made again when it is restored.
struct Alias {
  uint64_t address;
  uint64_t size;
  uint64_t offset;  // in the block
  uint64_t access;  // as SwapCalls::allow takes it
  uint32_t next;    // next alias of the same block; 0: last
  bool mapped;      // the driver has it mapped
  bool stale;       // unmapped by the program, but the driver failed to unmap it: not mapped again
};

class AliasTable {
 public:
  void set_calls(const SwapCalls* calls) { calls_ = calls; }
  Mutex& mutex() { return mutex_; }

  // With the mutex held. `first`: where the block's list begins.

  // Maps a part of the block's memory, of handle `handle`, as `alias` says.
  CUresult add(uint32_t* first, const Alias& alias, uint64_t handle);
  // Unmaps the alias at this address, if there is one. `may_stay`: an alias that cannot be unmapped
  // now is unmapped later.
  CUresult remove(uint32_t* first, uint64_t address, bool may_stay);
  // Notes the access that the driver has allowed at this address: the bits in `mask` are now those
  // of `value`.
  void note_access(uint32_t first, uint64_t address, uint64_t mask, uint64_t value);

  // The functions below take the mutex.

  // Unmaps all aliases of the list. `untouched`: set to false as soon as one is unmapped.
  CUresult hide(const uint32_t* first, bool* untouched);
  // Maps all aliases of the list again. `handle`: the block's memory.
  CUresult show(const uint32_t* first, uint64_t handle);
  // Unmaps the rest of the aliases of a block that nobody can find any more.
  CUresult end(uint32_t first);

 private:
  const SwapCalls* calls_;
  Mutex mutex_;
  Table<Alias> aliases_;
};

}  // namespace gpurota::interposer
