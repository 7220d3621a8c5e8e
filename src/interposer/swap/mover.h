// Moves blocks of a swap space between GPU and host memory, several copies under way at a time.
//
// Called by one thread at a time, the tenant's worker, while the gate is shut and the GPU drained.
// Whatever step fails, a block's bytes stay in one known place: an eviction that fails leaves its
// block resident, a restore that fails leaves it evicted, and both return what was done before.
//
// Memory is hashed before it is evicted, if possible (changes.cpp). Parts that host memory still
// has from the last eviction are not copied again. These copies are a cache, whose memory is given
// up for other needs.
#pragma once

#include "interposer/swap/space.h"

#include <cstdint>

namespace gpurota::interposer {

struct Moved {
  uint64_t bytes;  // freed in GPU memory (evict), or restored
  uint64_t clean;  // evict: bytes of these that did not have to be copied
  // Bytes of blocks that the program freed during the move and the mover ended: those that were in
  // GPU memory, and those that were evicted.
  uint64_t freed_here;
  uint64_t freed_out;
  uint64_t room;     // restore: all room, with what `more` added
  CUresult result;   // of the first step that failed
  bool out_of_host;  // `result` is a failure for want of host memory
};

class Mover {
 public:
  static constexpr uint32_t kBatch = 64;  // blocks that are hashed together

  // Called after each block with the bytes that were moved, and how many of these did not have to
  // be copied.
  using Progress = void (*)(void* self, uint64_t bytes, uint64_t clean);

  Mover(SwapSpace& space, Progress progress, void* self)
      : space_(space), calls_(*space.calls_), progress_(progress), self_(self) {}

  // Evicts at least `bytes`, in whole blocks, if so much is resident.
  Moved evict(uint64_t bytes);
  // Restores whole blocks, no more than `room` plus what `more` returns. `more(self)` is called
  // when no further block fits, and returns the bytes of room that were added in the meantime; 0:
  // none.
  using More = uint64_t (*)(void* self);
  Moved restore(uint64_t room, More more = nullptr);
  // To be called before the program runs: host memory may then no longer have the same bytes as the
  // GPU. The host memory of the copies is kept, and used again, as long as nobody else needs it.
  void forget_copies();
  // Gives up copies of resident blocks until `bytes` of host memory are free or no copies are left.
  // Copies of blocks that are likely to have changed go first.
  void reclaim_buffers(uint64_t bytes);

 private:
  static constexpr uint32_t kWindow = 6;
  struct Window {
    uint32_t blocks[kWindow];
    uint32_t first, count;
  };
  // Blocks that are evicted next, hashed together.
  struct Batch {
    uint32_t blocks[kBatch];
    uint32_t sums[kBatch];  // index of the block's first sum; kHashSums: it has none
    uint32_t count, next;
    uint32_t cursor;
    bool all;  // the blocks that are likely to be clean have been taken
    uint64_t planned;
  };
  enum class Verdict { kRight, kWrong, kUnknown };
  // kLater: blocks that are being moved use all bounce buffers.
  enum class Step { kDone, kLater, kFailed };

  // Takes the next block for which `wanted` returns true, and marks it as being moved. 0: there is
  // none.
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
  // Waits for copies of a block after a failure, so that its memory can be used otherwise.
  bool drain(Block& block);
  bool give_up_physical(Block& block);
  bool find_host(Block& block);
  // Ends the move of a block, and frees the block if the program has freed it meanwhile.
  void let_go(uint32_t index, Moved* moved);
  bool note(CUresult result, Moved* moved);
  // Takes bounce buffers for the pageable part of the block's host memory: of all units, or of the
  // stale ones.
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
