// Moves blocks of a swap space between GPU and host memory, several copies under way at once.
//
// Called by one thread at a time, the tenant's helper, while the gate is shut and the GPU drained.
// Whatever fails at whatever step, a block's bytes stay in one known place: an eviction that fails
// leaves its block resident, a restoring that fails leaves it out, and both say what was done
// before.
//
// Memory that is evicted is hashed first where that can be done (changes.cpp), and what is in host
// memory already, from the last eviction, is not copied again. These copies are a cache, whose
// memory goes to whatever needs it.
#pragma once

#include "interposer/swap/space.h"

#include <cstdint>

namespace gpurota::interposer {

struct Moved {
  uint64_t bytes;  // came free (evict), or are back (restore)
  uint64_t clean;  // evict: of these, that did not have to be copied
  // Of blocks that the program freed meanwhile, and that the mover ended: what was in GPU memory
  // then, and what was out.
  uint64_t freed_here;
  uint64_t freed_out;
  uint64_t room;     // restore: in all, also what was added
  CUresult result;   // of the first step that failed
  bool out_of_host;  // it failed for want of host memory
};

class Mover {
 public:
  static constexpr uint32_t kBatch = 64;  // blocks that are looked at together

  // Called after each block, with the bytes it moved, and how many of these did not have to be
  // copied.
  using Progress = void (*)(void* self, uint64_t bytes, uint64_t clean);

  Mover(SwapSpace& space, Progress progress, void* self)
      : space_(space), calls_(*space.calls_), progress_(progress), self_(self) {}

  // At least `bytes`, in whole blocks, if there are as many.
  Moved evict(uint64_t bytes);
  // Whole blocks, no more than `room` and what `more` adds to it. `more(self)` is called when no
  // block fits any more: room that has come meanwhile; 0: none.
  using More = uint64_t (*)(void* self);
  Moved restore(uint64_t room, More more = nullptr);
  // The program is about to run: what the host has may no longer be what the GPU has. The buffers
  // are kept, and used again, as long as nobody else needs them.
  void forget_copies();
  // Lets go of copies of what runs, until `bytes` of host memory are free or there are no more:
  // those first whose blocks are likely to have changed.
  void reclaim_buffers(uint64_t bytes);

 private:
  static constexpr uint32_t kWindow = 6;
  struct Window {
    uint32_t blocks[kWindow];
    uint32_t first, count;
  };
  // Blocks that are evicted next, looked at together.
  struct Batch {
    uint32_t blocks[kBatch];
    uint32_t sums[kBatch];  // where those of its pieces begin; kHashSums: it has none
    uint32_t count, next;
    uint32_t cursor;
    bool all;  // those that are likely to be clean have been taken
    uint64_t planned;
  };
  enum class Verdict { kRight, kWrong, kUnknown };
  // kLater: all bounce buffers are in use by blocks that are under way.
  enum class Step { kDone, kLater, kFailed };

  // Marks the next block that `wanted` says yes to as being moved; 0: there is none.
  template <typename Wanted>
  uint32_t pick(uint32_t* cursor, Wanted wanted);
  bool gather(uint64_t bytes, Batch* batch);
  Step begin_evict(Block& block, Moved* moved);
  bool finish_evict(Block& block, Moved* moved);
  Step begin_restore(Block& block, Moved* moved);
  bool finish_restore(Block& block, Moved* moved);
  Step give_up_restore(Block& block, CUresult result, Moved* moved);
  bool copy_out(Block& block);
  bool copy_in(Block& block);
  // Waits for copies of a block that failed half way, so that its memory can be used otherwise.
  bool drain(Block& block);
  bool give_up_physical(Block& block);
  bool find_host(Block& block);
  // The mover is done with the block; ends it if it was freed meanwhile.
  void let_go(uint32_t index, Moved* moved);
  bool note(CUresult result, Moved* moved);
  // Bounce buffers for the pageable part of its host memory: of all units, or of the stale ones.
  Step take_bounce(Block& block, bool stale_only);
  void empty_bounce(const Block& block);

  // changes.cpp
  void find_changes(Batch* batch);
  bool begin_hash(Batch* batch, HashSum* sums);
  HashSum sum_of_unit(const HashSum* sums, uint32_t unit) const;
  void compare(Block& block, const HashSum* sums);
  void keep_sums(Block& block, const HashSum* sums);
  Verdict check_hash(const Batch& batch, const HashSum* sums);
  Verdict check_hash(Block& block, uint32_t piece, const HashSum& sum);
  uint64_t roll(uint64_t below);

  SwapSpace& space_;
  const SwapCalls& calls_;
  Progress progress_;
  void* self_;
  CUresult last_ = CUDA_SUCCESS;
};

}  // namespace gpurota::interposer
