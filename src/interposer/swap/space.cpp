#include "interposer/swap/space.h"

namespace gpurota::interposer {
namespace {

uint64_t whole_pages(uint64_t size) { return (size + kPageBytes - 1) & ~(kPageBytes - 1); }

// Gives access with one call for GPU memory, and one for host memory.
CUresult give_access(const SwapCalls& calls, uint64_t address, uint64_t size, uint64_t hosted) {
  const uint64_t on_gpu = size - hosted;
  CUresult result = CUDA_SUCCESS;
  if (on_gpu != 0) result = calls.set_access(calls.self, address, on_gpu);
  if (result != CUDA_SUCCESS || hosted == 0) return result;
  return calls.set_access(calls.self, address + on_gpu, hosted);
}

}  // namespace

uint64_t SwapSpace::cost(uint64_t size) {
  constexpr uint64_t kMost = uint64_t{1} << 48;
  return size > kMost ? UINT64_MAX : whole_pages(size);
}

bool SwapSpace::plan_blocks(uint32_t index) {
  Range& range = ranges_[index];
  uint32_t last = 0;
  const uint64_t on_gpu = range.size - range.hosted;
  for (uint64_t offset = 0; offset < range.size;) {
    const uint64_t end = offset < on_gpu ? on_gpu : range.size;
    const uint32_t i = blocks_.take();
    if (i == 0) return false;
    Block& block = blocks_[i];
    block.address = range.address + offset;
    block.size = end - offset < kMostBlock ? end - offset : kMostBlock;
    block.hosted = offset >= on_gpu;
    block.range = index;
    block.state = BlockState::kComing;  // so that nobody moves it yet
    (last == 0 ? range.first_block : blocks_[last].next) = i;
    last = i;
    ++range.blocks;
    offset += block.size;
  }
  return true;
}

// Makes and maps physical memory for all blocks, and gives access.
CUresult SwapSpace::back(uint32_t index) {
  uint64_t address = 0;
  uint64_t size = 0;
  uint64_t hosted = 0;
  uint32_t traits = 0;
  uint32_t i = 0;
  {
    Lock lock(mutex_);
    address = ranges_[index].address;
    size = ranges_[index].size;
    hosted = ranges_[index].hosted;
    traits = ranges_[index].traits;
    i = ranges_[index].first_block;
  }
  while (i != 0) {
    Block& block = blocks_[i];  // only this thread uses it until its state changes
    const uint32_t kind = block.hosted ? kHosted : traits;
    CUresult result = calls_->create(calls_->self, block.size, kind, &block.handle);
    if (result != CUDA_SUCCESS) {
      block.handle = 0;
      return result;
    }
    (block.hosted ? hosted_ : resident_).fetch_add(block.size, std::memory_order_relaxed);
    result = calls_->map(calls_->self, block.address, block.size, 0, block.handle);
    if (result != CUDA_SUCCESS) return result;
    block.mapped = true;
    i = block.next;
  }
  return give_access(*calls_, address, size, hosted);
}

void SwapSpace::list_pages(const Range& range, uint32_t index) {
  for (uint64_t a = range.address; a < range.address + range.size; a += kPageBytes) {
    uint32_t* entry = pages_.put(a / kPageBytes);
    if (entry != nullptr) *entry = index;
  }
}

void SwapSpace::unlist_pages(const Range& range) {
  uint32_t gone = 0;
  for (uint64_t a = range.address; a < range.address + range.size; a += kPageBytes) {
    pages_.take(a / kPageBytes, &gone);
  }
}

CUresult SwapSpace::make_range(uint64_t size, uint64_t requested, uint64_t hosted, uint32_t traits,
                               uint32_t* out) {
  uint64_t address = 0;
  CUresult result = calls_->reserve(calls_->self, size, &address);
  if (result != CUDA_SUCCESS) return result;
  uint32_t index = 0;
  bool planned = false;
  {
    Lock lock(mutex_);
    index = ranges_.take();
    if (index != 0) {
      Range& range = ranges_[index];
      range.address = address;
      range.size = size;
      range.requested = requested;
      range.hosted = hosted;
      range.traits = traits;
      planned = plan_blocks(index);
    }
  }
  if (index == 0) {
    calls_->unreserve(calls_->self, address, size);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  result = planned ? back(index) : CUDA_ERROR_OUT_OF_MEMORY;
  if (result != CUDA_SUCCESS) {
    SwapFreed ended{};  // the daemon was not told of the range
    free_range(index, &ended);
    return result;
  }
  Lock lock(mutex_);
  for (uint32_t i = ranges_[index].first_block; i != 0; i = blocks_[i].next) {
    blocks_[i].state = BlockState::kResident;
  }
  list_pages(ranges_[index], index);
  *out = index;
  return CUDA_SUCCESS;
}

CUresult SwapSpace::allocate(uint64_t size, uint64_t* address, uint64_t* took, uint64_t hosted) {
  uint64_t needed = 0;
  if (took == nullptr) took = &needed;
  *took = 0;
  if (size == 0) return CUDA_ERROR_INVALID_VALUE;
  if (cost(size) == UINT64_MAX) return CUDA_ERROR_OUT_OF_MEMORY;
  if (size < kSmall) return allocate_small(size, hosted, address, took);
  uint32_t index = 0;
  const CUresult result = make_range(whole_pages(size), size, hosted, calls_->traits, &index);
  if (result != CUDA_SUCCESS) return result;
  *took = whole_pages(size);
  Lock lock(mutex_);
  *address = ranges_[index].address;
  return CUDA_SUCCESS;
}

bool SwapSpace::allocate_shared(uint64_t size, uint64_t* address) {
  if (size == 0 || size >= kSmall) return false;
  Lock lock(mutex_);
  return slabs_.carve(size, address);
}

CUresult SwapSpace::allocate_small(uint64_t size, uint64_t hosted, uint64_t* address,
                                   uint64_t* took) {
  {
    Lock lock(mutex_);
    if (slabs_.carve(size, address)) return CUDA_SUCCESS;
  }
  uint32_t index = 0;
  const CUresult result = make_range(kPageBytes, 0, hosted, calls_->traits, &index);
  if (result != CUDA_SUCCESS) return result;
  {
    Lock lock(mutex_);
    if (const uint32_t s = slabs_.add(ranges_[index].address); s != 0) {
      ranges_[index].slab = s;
      *took = kPageBytes;
      slabs_.carve(size, address);  // before another thread can fill or free the page
      return CUDA_SUCCESS;
    }
  }
  SwapFreed ended{};
  free_range(index, &ended);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

SwapSpace::Remains SwapSpace::take_block(uint32_t index) {
  Block& block = blocks_[index];
  const Remains remains{block.address, block.size,      block.handle, block.first_alias,
                        block.mapped,  block.undrained, block.hosted, block.host};
  if (block.state == BlockState::kOut) out_.fetch_sub(block.size, std::memory_order_relaxed);
  blocks_.give_back(index);
  return remains;
}

// The address can be given back only if nothing is mapped there; memory that the driver does not
// take back is counted for ever.
CUresult SwapSpace::end_block(Remains* remains, bool* address_free) {
  CUresult result = remains->undrained ? wait_for_copies(*calls_) : CUDA_SUCCESS;
  if (result != CUDA_SUCCESS) remains->host.count = 0;  // something may still be written there
  if (result == CUDA_SUCCESS) result = aliases_.end(remains->first_alias);
  if (remains->mapped) {
    if (result == CUDA_SUCCESS) {
      result = calls_->unmap(calls_->self, remains->address, remains->size);
    }
    if (result != CUDA_SUCCESS) *address_free = false;
  }
  if (remains->handle != 0) {
    if (result == CUDA_SUCCESS) result = calls_->release(calls_->self, remains->handle);
    if (result == CUDA_SUCCESS) {
      (remains->hosted ? hosted_ : resident_).fetch_sub(remains->size, std::memory_order_relaxed);
    } else if (!remains->hosted) {
      lost_.fetch_add(remains->size, std::memory_order_relaxed);
    }
  }
  host_.give_back(&remains->host);
  return result;
}

void SwapSpace::end_range(uint32_t index) {
  uint64_t address = 0;
  uint64_t size = 0;
  bool stays = false;
  {
    Lock lock(mutex_);
    address = ranges_[index].address;
    size = ranges_[index].size;
    stays = ranges_[index].stays;
    ranges_.give_back(index);
  }
  if (!stays) calls_->unreserve(calls_->self, address, size);
}

// Leaves a block that is being moved to the mover, which then frees the block (Block::doomed).
CUresult SwapSpace::free_range(uint32_t index, SwapFreed* freed) {
  CUresult result = CUDA_SUCCESS;
  bool last = false;
  uint32_t i = 0;
  {
    Lock lock(mutex_);
    i = ranges_[index].first_block;
    ranges_[index].first_block = 0;
    ++ranges_[index].blocks;  // one more for this walk, so that the mover does not end the range
  }
  while (i != 0) {
    Remains remains{};
    bool mine = false;
    const uint32_t next = blocks_[i].next;
    {
      Lock lock(mutex_);
      Block& block = blocks_[i];
      const bool moving = block.moving;
      block.doomed = moving;
      if (moving) ending_.fetch_add(block.size);
      mine = !moving;
      if (mine) {
        (block.hosted        ? freed->hosted
         : block.wired       ? freed->wired
         : block.handle != 0 ? freed->released
                             : freed->dropped) += block.size;
        remains = take_block(i);
      }
    }
    bool address_free = true;
    if (mine) {
      const CUresult ended = end_block(&remains, &address_free);
      if (result == CUDA_SUCCESS) result = ended;
      Lock lock(mutex_);
      --ranges_[index].blocks;
      if (!address_free) ranges_[index].stays = true;
    }
    i = next;
  }
  {
    Lock lock(mutex_);
    last = --ranges_[index].blocks == 0;
  }
  if (last) end_range(index);
  return result;
}

CUresult SwapSpace::free(uint64_t address, SwapFreed* freed) {
  *freed = {};
  uint32_t index = 0;
  {
    Lock lock(mutex_);
    const uint32_t* entry = pages_.find(address / kPageBytes);
    if (entry == nullptr) return CUDA_ERROR_INVALID_VALUE;
    index = *entry;
    const uint32_t s = ranges_[index].slab;
    if (s == 0 && ranges_[index].address != address) return CUDA_ERROR_INVALID_VALUE;
    if (s != 0) {
      bool empty = false;
      if (!slabs_.uncarve(s, address, &empty)) return CUDA_ERROR_INVALID_VALUE;
      if (!empty) return CUDA_SUCCESS;
      slabs_.remove(s);
    }
    unlist_pages(ranges_[index]);
  }
  return free_range(index, freed);
}

Range* SwapSpace::range_of(uint64_t address) {
  const uint32_t* entry = pages_.find(address / kPageBytes);
  return entry != nullptr ? &ranges_[*entry] : nullptr;
}

bool SwapSpace::find_backing(uint64_t address, SwapBacking* out) {
  Lock lock(mutex_);
  const Range* range = range_of(address);
  if (range == nullptr) return false;
  *out = {range->address, range->size, 0, range->hosted, range->blocks};
  for (uint32_t i = range->first_block; i != 0; i = blocks_[i].next) {
    if (!blocks_[i].wired && !blocks_[i].hosted) out->movable += blocks_[i].size;
  }
  return true;
}

uint64_t SwapSpace::wire(uint64_t address) {
  Lock lock(mutex_);
  const Range* range = range_of(address);
  uint64_t bytes = 0;
  for (uint32_t i = range != nullptr ? range->first_block : 0; i != 0; i = blocks_[i].next) {
    if (blocks_[i].wired || blocks_[i].hosted) continue;
    blocks_[i].wired = true;
    bytes += blocks_[i].size;
  }
  return bytes;
}

uint32_t SwapSpace::handles(uint64_t address, uint32_t first, uint32_t most, uint64_t* out) {
  Lock lock(mutex_);
  const Range* range = range_of(address);
  uint32_t number = 0;
  uint32_t count = 0;
  for (uint32_t i = range != nullptr ? range->first_block : 0; i != 0; i = blocks_[i].next) {
    if (number++ < first) continue;
    if (count == most) break;
    out[count++] = blocks_[i].handle;
  }
  return count;
}

bool SwapSpace::find(uint64_t address, FoundRange* out) {
  Lock lock(mutex_);
  const uint32_t* entry = pages_.find(address / kPageBytes);
  if (entry == nullptr) return false;
  const Range& range = ranges_[*entry];
  if (range.slab == 0) {
    *out = {range.address, range.requested};
    return address < range.address + range.requested;
  }
  return slabs_.find(range.slab, address, out);
}

CUresult SwapSpace::allocate_pages(uint64_t size, uint32_t traits, uint64_t* home) {
  uint32_t index = 0;
  const uint64_t hosted = (traits & kHosted) != 0 ? size : 0;
  const CUresult result = make_range(size, size, hosted, traits, &index);
  if (result != CUDA_SUCCESS) return result;
  Lock lock(mutex_);
  *home = ranges_[index].address;
  return CUDA_SUCCESS;
}

uint32_t SwapSpace::block_at(uint64_t home, uint64_t offset) {
  Lock lock(mutex_);
  const uint32_t* entry = pages_.find(home / kPageBytes);
  if (entry == nullptr) return 0;
  uint32_t i = ranges_[*entry].first_block;
  for (uint64_t n = offset / kMostBlock; n > 0 && i != 0; --n) i = blocks_[i].next;
  return i;
}

CUresult SwapSpace::map_alias(uint64_t home, uint64_t offset, uint64_t address, uint64_t size) {
  CUresult result = CUDA_SUCCESS;
  uint64_t done = 0;
  {
    Lock lock(aliases_.mutex());
    while (done < size && result == CUDA_SUCCESS) {
      const uint32_t i = block_at(home, offset + done);
      if (i == 0) return CUDA_ERROR_INVALID_VALUE;
      Block& block = blocks_[i];
      const uint64_t inside = (offset + done) % kMostBlock;
      const uint64_t left = block.size - inside;
      const uint64_t part = left < size - done ? left : size - done;
      result = aliases_.add(&block.first_alias, {address + done, part, inside, 0, 0, true, false},
                            block.handle);
      if (result == CUDA_SUCCESS) done += part;
    }
  }
  if (result != CUDA_SUCCESS && done != 0) unmap_aliases(home, offset, address, done, true);
  return result;
}

CUresult SwapSpace::unmap_alias(uint64_t home, uint64_t offset, uint64_t address, uint64_t size) {
  return unmap_aliases(home, offset, address, size, false);
}

CUresult SwapSpace::unmap_aliases(uint64_t home, uint64_t offset, uint64_t address, uint64_t size,
                                  bool may_stay) {
  Lock lock(aliases_.mutex());
  for (uint64_t done = 0; done < size;) {
    const uint32_t i = block_at(home, offset + done);
    if (i == 0) return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = aliases_.remove(&blocks_[i].first_alias, address + done, may_stay);
    if (result != CUDA_SUCCESS) return result;
    done += blocks_[i].size - (offset + done) % kMostBlock;
  }
  return CUDA_SUCCESS;
}

void SwapSpace::note_access(uint64_t home, uint64_t offset, uint64_t address, uint64_t size,
                            uint64_t mask, uint64_t value) {
  Lock lock(aliases_.mutex());
  for (uint64_t done = 0; done < size;) {
    const uint32_t i = block_at(home, offset + done);
    if (i == 0) return;
    aliases_.note_access(blocks_[i].first_alias, address + done, mask, value);
    done += blocks_[i].size - (offset + done) % kMostBlock;
  }
}

}  // namespace gpurota::interposer
