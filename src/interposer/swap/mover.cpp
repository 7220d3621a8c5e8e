#include "interposer/swap/mover.h"

#include <string.h>

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

// Buffers of blocks that run: their contents are of no use.
void Mover::reclaim_buffers() {
  for (uint32_t i = 1; i < space_.blocks_.end(); ++i) {
    HostBuffer buffer{};
    {
      Lock lock(space_.mutex_);
      if (!space_.blocks_.is_used(i)) continue;
      Block& block = space_.blocks_[i];
      if (block.moving || block.state != BlockState::kResident || block.copy_valid) continue;
      buffer = block.host;
      block.host.count = 0;
    }
    space_.host_.give_back(&buffer);
  }
}

bool Mover::find_host(Block& block) {
  if (block.host.count != 0) return true;
  if (space_.host_.take(block.size, &block.host)) return true;
  reclaim_buffers();
  return space_.host_.take(block.size, &block.host);
}

// Memory that is not pinned is reached through a piece that is.
// A copy from or to it that failed half way may still be under way: it must not meet the next one.
bool Mover::have_ring() {
  if (space_.ring_ != nullptr) return !space_.ring_in_use_ || space_.drain() == CUDA_SUCCESS;
  void* ring = calls_.map_host(calls_.self, kUnitBytes);
  if (ring == nullptr) return false;
  if (!calls_.pin(calls_.self, ring, kUnitBytes)) {
    calls_.unmap_host(calls_.self, ring, kUnitBytes);
    return false;
  }
  space_.ring_ = ring;
  return true;
}

bool Mover::stage_out(const HostExtent& extent, uint64_t address, uint64_t size) {
  char* to = space_.host_.address(extent);
  if (!have_ring()) {
    last_ = CUDA_ERROR_OUT_OF_MEMORY;
    return false;
  }
  for (uint64_t done = 0; done < size; done += kUnitBytes) {
    const uint64_t part = size - done < kUnitBytes ? size - done : kUnitBytes;
    space_.ring_in_use_ = true;
    last_ = calls_.copy_out(calls_.self, space_.ring_, address + done, part);
    if (last_ == CUDA_SUCCESS) last_ = space_.drain();
    if (last_ != CUDA_SUCCESS) return false;
    space_.ring_in_use_ = false;
    memcpy(to + done, space_.ring_, part);
  }
  return true;
}

bool Mover::stage_in(const HostExtent& extent, uint64_t address, uint64_t size) {
  const char* from = space_.host_.address(extent);
  if (!have_ring()) {
    last_ = CUDA_ERROR_OUT_OF_MEMORY;
    return false;
  }
  for (uint64_t done = 0; done < size; done += kUnitBytes) {
    const uint64_t part = size - done < kUnitBytes ? size - done : kUnitBytes;
    memcpy(space_.ring_, from + done, part);
    space_.ring_in_use_ = true;
    last_ = calls_.copy_in(calls_.self, address + done, space_.ring_, part);
    if (last_ == CUDA_SUCCESS) last_ = space_.drain();
    if (last_ != CUDA_SUCCESS) return false;
    space_.ring_in_use_ = false;
  }
  return true;
}

bool Mover::copy_out(Block& block) {
  uint64_t offset = 0;
  for (uint32_t i = 0; i < block.host.count; ++i) {
    const HostExtent& extent = block.host.extents[i];
    const uint64_t bytes = extent.count * kUnitBytes;
    if (space_.host_.pinned(extent)) {
      last_ =
          calls_.copy_out(calls_.self, space_.host_.address(extent), block.address + offset, bytes);
      if (last_ != CUDA_SUCCESS) return false;
    } else if (!stage_out(extent, block.address + offset, bytes)) {
      return false;
    }
    offset += bytes;
  }
  last_ = calls_.fence(calls_.self, &block.token);
  return last_ == CUDA_SUCCESS;
}

bool Mover::copy_in(Block& block) {
  uint64_t offset = 0;
  for (uint32_t i = 0; i < block.host.count; ++i) {
    const HostExtent& extent = block.host.extents[i];
    const uint64_t bytes = extent.count * kUnitBytes;
    if (space_.host_.pinned(extent)) {
      last_ =
          calls_.copy_in(calls_.self, block.address + offset, space_.host_.address(extent), bytes);
      if (last_ != CUDA_SUCCESS) return false;
    } else if (!stage_in(extent, block.address + offset, bytes)) {
      return false;
    }
    offset += bytes;
  }
  last_ = calls_.fence(calls_.self, &block.token);
  return last_ == CUDA_SUCCESS;
}

bool Mover::drain(Block& block) {
  block.undrained = space_.drain() != CUDA_SUCCESS;
  return !block.undrained;
}

bool Mover::begin_evict(Block& block, Moved* moved) {
  if (block.state == BlockState::kOut || block.copy_valid) return true;  // nothing to copy
  if (!find_host(block)) {
    moved->out_of_host = true;
    return note(CUDA_ERROR_OUT_OF_MEMORY, moved);
  }
  if (copy_out(block)) return true;
  // A copy that may still be under way must not write into a buffer that somebody else has by then.
  if (!drain(block)) block.host.count = 0;
  return note(last_, moved);
}

bool Mover::finish_evict(Block& block, Moved* moved) {
  if (block.state == BlockState::kResident && !block.copy_valid) {
    const CUresult result = calls_.wait(calls_.self, block.token);
    if (result != CUDA_SUCCESS) {
      if (!drain(block)) block.host.count = 0;
      return note(result, moved);
    }
    block.copy_valid = true;
    block.undrained = false;  // what was begun before is done too: copies are in order
  }
  if (block.undrained && !drain(block)) return note(CUDA_ERROR_UNKNOWN, moved);
  if (block.mapped) {
    const CUresult result = calls_.unmap(calls_.self, block.address, block.size);
    if (result != CUDA_SUCCESS) return note(result, moved);
    block.mapped = false;
  }
  if (block.state == BlockState::kResident) {
    Lock lock(space_.mutex_);
    block.state = BlockState::kOut;
    space_.out_.fetch_add(block.size, std::memory_order_relaxed);
  }
  const CUresult result = calls_.release(calls_.self, block.handle);
  if (result != CUDA_SUCCESS) return note(result, moved);  // out, and tried again another time
  block.handle = 0;
  space_.resident_.fetch_sub(block.size, std::memory_order_relaxed);
  moved->bytes += block.size;
  progress_(self_, block.size);
  return true;
}

Moved Mover::evict(uint64_t bytes) {
  Moved moved{};
  Window window{};
  uint32_t cursor = 1;
  uint64_t planned = 0;
  bool going = true;
  for (;;) {
    while (going && planned < bytes && window.count < kWindow) {
      const uint32_t index = pick(&cursor, [](const Block& b) {
        return b.state == BlockState::kResident || (b.state == BlockState::kOut && b.handle != 0);
      });
      if (index == 0) break;
      Block& block = space_.blocks_[index];
      going = begin_evict(block, &moved);
      if (!going) {
        let_go(index, &moved);
        break;
      }
      planned += block.size;
      window.blocks[(window.first + window.count++) % kWindow] = index;
    }
    if (window.count == 0) return moved;
    const uint32_t index = window.blocks[window.first];
    window.first = (window.first + 1) % kWindow;
    --window.count;
    going = finish_evict(space_.blocks_[index], &moved) && going;
    let_go(index, &moved);
  }
}

// Back to where it was: its bytes are in host memory. What the driver keeps is noted in the block.
bool Mover::give_up_physical(Block& block) {
  if (block.mapped && !block.undrained &&
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

bool Mover::begin_restore(Block& block, Moved* moved) {
  {
    Lock lock(space_.mutex_);
    block.state = BlockState::kComing;
    space_.out_.fetch_sub(block.size, std::memory_order_relaxed);
  }
  if (block.handle == 0) {
    const CUresult result = calls_.create(calls_.self, block.size, &block.handle);
    if (result != CUDA_SUCCESS) {
      block.handle = 0;
      Lock lock(space_.mutex_);
      block.state = BlockState::kOut;
      space_.out_.fetch_add(block.size, std::memory_order_relaxed);
      return note(result, moved);
    }
    space_.resident_.fetch_add(block.size, std::memory_order_relaxed);
  }
  if (!block.mapped) {
    const CUresult result = calls_.map(calls_.self, block.address, block.size, block.handle);
    if (result != CUDA_SUCCESS) return note(result, moved) || give_up_physical(block);
    block.mapped = true;
  }
  const CUresult result = calls_.set_access(calls_.self, block.address, block.size);
  if (result != CUDA_SUCCESS) return note(result, moved) || give_up_physical(block);
  if (copy_in(block)) return true;
  drain(block);
  return note(last_, moved) || give_up_physical(block);
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
  progress_(self_, block.size);
  return true;
}

Moved Mover::restore(uint64_t room) {
  Moved moved{};
  Window window{};
  uint32_t cursor = 1;
  uint64_t planned = 0;
  bool going = true;
  for (;;) {
    while (going && window.count < kWindow) {
      const uint32_t index = pick(&cursor, [&](const Block& b) {
        return b.state == BlockState::kOut && planned + b.size <= room;
      });
      if (index == 0) break;
      Block& block = space_.blocks_[index];
      planned += block.size;
      going = begin_restore(block, &moved);
      if (!going) {
        let_go(index, &moved);
        break;
      }
      window.blocks[(window.first + window.count++) % kWindow] = index;
    }
    if (window.count == 0) return moved;
    const uint32_t index = window.blocks[window.first];
    window.first = (window.first + 1) % kWindow;
    --window.count;
    going = finish_restore(space_.blocks_[index], &moved) && going;
    let_go(index, &moved);
  }
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
