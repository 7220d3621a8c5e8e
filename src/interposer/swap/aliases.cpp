// Memory that the program maps itself: where else than at our own address its blocks are mapped.
//
// Whatever copies a block uses the address that we keep it at, so a block that is mapped nowhere, in part, or
// without access can be moved like any other.
#include "interposer/swap/space.h"

namespace gpurota::interposer {

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

CUresult SwapSpace::add_alias(Block& block, const Alias& alias) {
  const uint32_t index = aliases_.take();
  if (index == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result =
      calls_->map(calls_->self, alias.address, alias.size, alias.offset, block.handle);
  if (result != CUDA_SUCCESS) {
    aliases_.give_back(index);
    return result;
  }
  aliases_[index] = alias;
  aliases_[index].next = block.first_alias;
  block.first_alias = index;
  return CUDA_SUCCESS;
}

CUresult SwapSpace::map_alias(uint64_t home, uint64_t offset, uint64_t address, uint64_t size) {
  CUresult result = CUDA_SUCCESS;
  uint64_t done = 0;
  {
    Lock lock(alias_mutex_);
    while (done < size && result == CUDA_SUCCESS) {
      const uint32_t i = block_at(home, offset + done);
      if (i == 0) return CUDA_ERROR_INVALID_VALUE;
      const uint64_t inside = (offset + done) % kMostBlock;
      const uint64_t left = blocks_[i].size - inside;
      const uint64_t part = left < size - done ? left : size - done;
      result = add_alias(blocks_[i], {address + done, part, inside, 0, 0, true, false});
      if (result == CUDA_SUCCESS) done += part;
    }
  }
  if (result != CUDA_SUCCESS && done != 0) unmap_aliases(home, offset, address, done, true);
  return result;
}

CUresult SwapSpace::unmap_alias(uint64_t home, uint64_t offset, uint64_t address, uint64_t size) {
  return unmap_aliases(home, offset, address, size, false);
}

// `may_stay`: what cannot be unmapped is left to a later time.
CUresult SwapSpace::unmap_aliases(uint64_t home, uint64_t offset, uint64_t address, uint64_t size,
                                  bool may_stay) {
  Lock lock(alias_mutex_);
  for (uint64_t done = 0; done < size;) {
    const uint32_t i = block_at(home, offset + done);
    if (i == 0) return CUDA_ERROR_INVALID_VALUE;
    uint32_t* link = &blocks_[i].first_alias;
    while (*link != 0 && (aliases_[*link].address != address + done || aliases_[*link].stale)) {
      link = &aliases_[*link].next;
    }
    if (const uint32_t index = *link; index != 0) {
      Alias& alias = aliases_[index];
      CUresult result = CUDA_SUCCESS;
      if (alias.mapped) result = calls_->unmap(calls_->self, alias.address, alias.size);
      if (result != CUDA_SUCCESS && !may_stay) return result;
      alias.stale = result != CUDA_SUCCESS;
      if (!alias.stale) {
        *link = alias.next;
        aliases_.give_back(index);
      }
    }
    done += blocks_[i].size - (offset + done) % kMostBlock;
  }
  return CUDA_SUCCESS;
}

void SwapSpace::note_access(uint64_t home, uint64_t offset, uint64_t address, uint64_t size,
                            uint64_t mask, uint64_t value) {
  Lock lock(alias_mutex_);
  for (uint64_t done = 0; done < size;) {
    const uint32_t i = block_at(home, offset + done);
    if (i == 0) return;
    for (uint32_t a = blocks_[i].first_alias; a != 0; a = aliases_[a].next) {
      Alias& alias = aliases_[a];
      if (alias.address == address + done) alias.access = (alias.access & ~mask) | value;
    }
    done += blocks_[i].size - (offset + done) % kMostBlock;
  }
}

CUresult SwapSpace::hide_aliases(Block& block, bool* untouched) {
  Lock lock(alias_mutex_);
  for (uint32_t a = block.first_alias; a != 0; a = aliases_[a].next) {
    Alias& alias = aliases_[a];
    if (!alias.mapped) continue;
    const CUresult result = calls_->unmap(calls_->self, alias.address, alias.size);
    if (result != CUDA_SUCCESS) return result;
    alias.mapped = false;
    *untouched = false;
  }
  return CUDA_SUCCESS;
}

CUresult SwapSpace::show_aliases(Block& block) {
  Lock lock(alias_mutex_);
  for (uint32_t a = block.first_alias; a != 0; a = aliases_[a].next) {
    Alias& alias = aliases_[a];
    if (alias.stale) continue;
    CUresult result = CUDA_SUCCESS;
    if (!alias.mapped) {
      result = calls_->map(calls_->self, alias.address, alias.size, alias.offset, block.handle);
      alias.mapped = result == CUDA_SUCCESS;
    }
    if (result == CUDA_SUCCESS && alias.access != 0) {
      result = calls_->allow(calls_->self, alias.address, alias.size, alias.access);
    }
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

CUresult SwapSpace::end_aliases(uint32_t first) {
  CUresult result = CUDA_SUCCESS;
  Lock lock(alias_mutex_);
  for (uint32_t a = first; a != 0;) {
    const Alias alias = aliases_[a];
    aliases_.give_back(a);
    a = alias.next;
    if (!alias.mapped) continue;
    const CUresult unmapped = calls_->unmap(calls_->self, alias.address, alias.size);
    if (result == CUDA_SUCCESS) result = unmapped;
  }
  return result;
}

}  // namespace gpurota::interposer
