#include "interposer/swap/mover.h"

namespace gpurota::interposer {

bool Mover::note(CUresult result, Moved* moved) {
  if (result == CUDA_SUCCESS) return true;
  if (moved->result == CUDA_SUCCESS) moved->result = result;
  return false;
}

template <typename Wanted>
uint32_t Mover::pick(uint32_t* cursor, Wanted wanted) {
  Lock lock(space_.mutex_);
  for (; *cursor < space_.blocks_.end(); ++*cursor) {
    if (!space_.blocks_.is_used(*cursor)) continue;
    Block& block = space_.blocks_[*cursor];
    if (block.moving || !wanted(block)) continue;
    block.moving = true;
    return (*cursor)++;
  }
  return 0;
}

void Mover::let_go(uint32_t index, Moved* moved) {
  Block& block = space_.blocks_[index];
  space_.bounce_.give_back(&block.bounce, block.undrained);
  SwapSpace::Remains remains{};
  uint32_t range = 0;
  {
    Lock lock(space_.mutex_);
    block.moving = false;
    if (!block.doomed) return;
    range = block.range;
    (block.handle != 0 ? moved->freed_here : moved->freed_out) += block.size;
    remains = space_.take_block(index);
  }
  bool address_free = true;
  space_.end_block(&remains, &address_free);
  bool last = false;
  {
    Lock lock(space_.mutex_);
    if (!address_free) space_.ranges_[range].stays = true;
    last = --space_.ranges_[range].blocks == 0;
  }
  if (last) space_.end_range(range);
}

void Mover::reclaim_buffers(uint64_t bytes) {
  for (const bool all : {false, true}) {
    for (uint32_t i = 1; i < space_.blocks_.end(); ++i) {
      if (space_.host_.free_bytes() >= bytes) return;
      HostBuffer buffer{};
      {
        Lock lock(space_.mutex_);
        if (!space_.blocks_.is_used(i)) continue;
        Block& block = space_.blocks_[i];
        if (block.moving || block.state != BlockState::kResident || block.copy_valid) continue;
        if (!all && block.kept && block.changed == 0) continue;
        buffer = block.host;
        block.host.count = 0;
        block.kept = false;
      }
      space_.host_.give_back(&buffer);
    }
  }
}

// If not all memory can be pinned, pageable blocks are spread evenly among the pinned ones. Then
// threads copy pageable blocks, at this and all later moves, while the bus is busy with pinned
// ones.
bool Mover::find_host(Block& block) {
  if (block.host.count != 0) return true;
  const uint64_t all = space_.resident_bytes() + space_.out_bytes();
  const uint64_t limit = space_.host_.pinned_limit();
  if (limit < all) space_.pageable_owed_ += block.size / 256 * ((all - limit) / (all / 256 + 1));
  const bool pageable = limit < all && space_.pageable_owed_ >= block.size;
  if (pageable) space_.pageable_owed_ -= block.size;
  if (space_.host_.take(block.size, &block.host, pageable)) return true;
  reclaim_buffers(block.size);
  return space_.host_.take(block.size, &block.host, pageable);
}

bool Mover::drain(Block& block) {
  block.undrained = wait_for_copies(calls_) != CUDA_SUCCESS;
  return !block.undrained;
}

Mover::Step Mover::begin_evict(Block& block, Moved* moved) {
  // Nothing to copy.
  if (block.state == BlockState::kOut || block.copy_valid) return Step::kDone;
  if (block.stale == 0) {
    block.copy_valid = true;
    return Step::kDone;
  }
  if (!find_host(block)) {
    moved->out_of_host = true;
    note(CUDA_ERROR_OUT_OF_MEMORY, moved);
    return Step::kFailed;
  }
  const Step bounce = take_bounce(block, true);
  if (bounce == Step::kFailed) note(last_, moved);
  if (bounce != Step::kDone) return bounce;
  block.kept = false;
  if (copy_out(block)) return Step::kDone;
  note(last_, moved);
  // A copy that may still be under way must not write into memory of another block, so this block's
  // buffer is never given back.
  if (!drain(block)) block.host.count = 0;
  return Step::kFailed;
}

bool Mover::finish_evict(Block& block, Moved* moved) {
  if (block.state == BlockState::kResident && !block.copy_valid) {
    const CUresult result = calls_.wait(calls_.self, block.token);
    if (result != CUDA_SUCCESS) {
      if (!drain(block)) block.host.count = 0;
      return note(result, moved);
    }
    empty_bounce(block);
    block.copy_valid = true;
    block.kept = block.summed;
    block.undrained = false;  // earlier copies are done, too: copies are in order
  }
  if (block.undrained && !drain(block)) return note(CUDA_ERROR_UNKNOWN, moved);
  bool untouched = true;
  CUresult unmapped = space_.aliases_.hide(&block.first_alias, &untouched);
  if (unmapped == CUDA_SUCCESS && block.mapped) {
    unmapped = calls_.unmap(calls_.self, block.address, block.size);
    block.mapped = unmapped != CUDA_SUCCESS;
  }
  if (unmapped != CUDA_SUCCESS && untouched) return note(unmapped, moved);
  if (block.state == BlockState::kResident) {
    Lock lock(space_.mutex_);
    block.state = BlockState::kOut;
    space_.out_.fetch_add(block.size, std::memory_order_relaxed);
  }
  if (unmapped != CUDA_SUCCESS) return note(unmapped, moved);  // evicted, as when releasing fails
  const CUresult result = calls_.release(calls_.self, block.handle);
  if (result != CUDA_SUCCESS) return note(result, moved);  // evicted; released at a later try
  block.handle = 0;
  space_.resident_.fetch_sub(block.size, std::memory_order_relaxed);
  const uint64_t copied = static_cast<uint64_t>(__builtin_popcount(block.stale)) * kUnitBytes;
  const uint64_t clean = copied < block.size ? block.size - copied : 0;
  moved->bytes += block.size;
  moved->clean += clean;
  progress_(self_, block.size, clean);
  return true;
}

// Collects the next blocks to evict. Blocks that are likely to need no copy come first.
bool Mover::gather(uint64_t bytes, Batch* batch) {
  batch->count = batch->next = 0;
  while (batch->count < kBatch && batch->planned < bytes) {
    const uint32_t index = pick(&batch->cursor, [&](const Block& b) {
      if (b.wired || b.hosted) return false;
      const bool likely = b.copy_valid || (b.kept && b.changed == 0);
      if (b.state == BlockState::kResident) return batch->all || likely;
      return batch->all && b.state == BlockState::kOut && b.handle != 0;
    });
    if (index != 0) {
      batch->blocks[batch->count++] = index;
      batch->planned += space_.blocks_[index].size;
    } else if (batch->all) {
      break;
    } else {
      batch->all = true;
      batch->cursor = 1;
    }
  }
  if (batch->count == 0) return false;
  find_changes(batch);
  return true;
}

Moved Mover::evict(uint64_t bytes) {
  Moved moved{};
  Window window{};
  Batch batch{};
  bool going = true;
  for (;;) {
    while (going && window.count < kWindow) {
      if (batch.next == batch.count && !gather(bytes, &batch)) break;
      const uint32_t index = batch.blocks[batch.next];
      const Step step = begin_evict(space_.blocks_[index], &moved);
      if (step == Step::kLater && window.count > 0) break;
      if (step == Step::kLater) note(CUDA_ERROR_OUT_OF_MEMORY, &moved);
      ++batch.next;
      going = step == Step::kDone;
      if (!going) {
        let_go(index, &moved);
        break;
      }
      window.blocks[(window.first + window.count++) % kWindow] = index;
    }
    if (window.count == 0) break;
    const uint32_t index = window.blocks[window.first];
    window.first = (window.first + 1) % kWindow;
    --window.count;
    going = finish_evict(space_.blocks_[index], &moved) && going;
    let_go(index, &moved);
  }
  while (batch.next < batch.count) let_go(batch.blocks[batch.next++], &moved);
  space_.copiers_.stop();
  return moved;
}

// Undoes a restore: the block's bytes are in host memory. If the driver does not take the physical
// memory back, the block keeps it.
bool Mover::give_up_physical(Block& block) {
  bool untouched = true;
  if (block.mapped && !block.undrained &&
      space_.aliases_.hide(&block.first_alias, &untouched) == CUDA_SUCCESS &&
      calls_.unmap(calls_.self, block.address, block.size) == CUDA_SUCCESS) {
    block.mapped = false;
  }
  if (!block.mapped && calls_.release(calls_.self, block.handle) == CUDA_SUCCESS) {
    block.handle = 0;
    space_.resident_.fetch_sub(block.size, std::memory_order_relaxed);
  }
  Lock lock(space_.mutex_);
  block.state = BlockState::kOut;
  space_.out_.fetch_add(block.size, std::memory_order_relaxed);
  return false;
}

Mover::Step Mover::begin_restore(Block& block, Moved* moved) {
  const Step bounce = take_bounce(block, false);
  if (bounce == Step::kFailed) note(last_, moved);
  if (bounce != Step::kDone) return bounce;
  {
    Lock lock(space_.mutex_);
    block.state = BlockState::kComing;
    space_.out_.fetch_sub(block.size, std::memory_order_relaxed);
  }
  if (block.handle == 0) {
    const uint32_t traits = space_.ranges_[block.range].traits;
    const CUresult result = calls_.create(calls_.self, block.size, traits, &block.handle);
    if (result != CUDA_SUCCESS) {
      block.handle = 0;
      Lock lock(space_.mutex_);
      block.state = BlockState::kOut;
      space_.out_.fetch_add(block.size, std::memory_order_relaxed);
      note(result, moved);
      return Step::kFailed;
    }
    space_.resident_.fetch_add(block.size, std::memory_order_relaxed);
  }
  if (!block.mapped) {
    const CUresult result = calls_.map(calls_.self, block.address, block.size, 0, block.handle);
    if (result != CUDA_SUCCESS) return give_up_restore(block, result, moved);
    block.mapped = true;
  }
  CUresult result = calls_.set_access(calls_.self, block.address, block.size);
  if (result == CUDA_SUCCESS) result = space_.aliases_.show(&block.first_alias, block.handle);
  if (result != CUDA_SUCCESS) return give_up_restore(block, result, moved);
  if (copy_in(block)) return Step::kDone;
  result = last_;
  drain(block);
  return give_up_restore(block, result, moved);
}

Mover::Step Mover::give_up_restore(Block& block, CUresult result, Moved* moved) {
  note(result, moved);
  give_up_physical(block);
  return Step::kFailed;
}

bool Mover::finish_restore(Block& block, Moved* moved) {
  const CUresult result = calls_.wait(calls_.self, block.token);
  if (result != CUDA_SUCCESS) {
    drain(block);
    return note(result, moved) || give_up_physical(block);
  }
  block.undrained = false;
  {
    Lock lock(space_.mutex_);
    block.state = BlockState::kResident;
  }
  moved->bytes += block.size;
  progress_(self_, block.size, 0);
  return true;
}

Moved Mover::restore(uint64_t room, More more) {
  Moved moved{};
  moved.room = room;
  Window window{};
  uint32_t cursor = 1;
  uint32_t next = 0;  // picked, but not begun yet
  uint64_t planned = 0;
  bool going = true;
  for (;;) {
    while (going && window.count < kWindow) {
      if (next == 0) {
        next = pick(&cursor, [&](const Block& b) {
          return b.state == BlockState::kOut && planned + b.size <= moved.room;
        });
        if (next != 0) planned += space_.blocks_[next].size;
      }
      if (next == 0) {
        const uint64_t added = more != nullptr ? more(self_) : 0;
        if (added == 0) break;
        moved.room += added;
        cursor = 1;
        continue;
      }
      const Step step = begin_restore(space_.blocks_[next], &moved);
      if (step == Step::kLater && window.count > 0) break;
      if (step == Step::kLater) note(CUDA_ERROR_OUT_OF_MEMORY, &moved);
      going = step == Step::kDone;
      if (!going) break;
      window.blocks[(window.first + window.count++) % kWindow] = next;
      next = 0;
    }
    if (window.count == 0) break;
    const uint32_t index = window.blocks[window.first];
    window.first = (window.first + 1) % kWindow;
    --window.count;
    going = finish_restore(space_.blocks_[index], &moved) && going;
    let_go(index, &moved);
  }
  if (next != 0) let_go(next, &moved);
  space_.copiers_.stop();
  return moved;
}

void Mover::forget_copies() {
  Lock lock(space_.mutex_);
  for (uint32_t i = 1; i < space_.blocks_.end(); ++i) {
    if (!space_.blocks_.is_used(i)) continue;
    Block& block = space_.blocks_[i];
    if (block.state == BlockState::kResident && !block.moving) block.copy_valid = false;
  }
}

}  // namespace gpurota::interposer
